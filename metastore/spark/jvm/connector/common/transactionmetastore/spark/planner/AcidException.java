package transactionmetastore.spark.planner;

import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkRuntimeException;
import scala.collection.immutable.Map.Map1;

/**
 * A refusal, in a sentence for the user; "condition" is its class, one of metastore/errors.py where the metastore said it.
 *
 * It is one of Spark's own, which PySpark, Spark Connect and JDBC show by their message alone. Where in our code it was thrown tells
 * a user nothing, so it has no frames of its own; what caused it has.
 */
public final class AcidException extends SparkRuntimeException {
    private static final long serialVersionUID = 1L;
    private static final String OF_SPARK = "INTERNAL_ERROR";  // any that takes a message: ours is not in its list

    private final String condition, sentence;

    public AcidException(String condition, String message) {
        this(condition, message, null);
    }

    public AcidException(String condition, String message, Throwable cause) {
        super(OF_SPARK, new Map1<>("message", message), cause, new QueryContext[0], "");
        this.condition = condition;
        this.sentence = message;
    }

    public boolean is(String other) {
        return condition.equals(other);
    }

    @Override
    public String getMessage() {
        return sentence;
    }

    @Override
    public String getCondition() {
        return condition;
    }

    /** What SQL's standard has for a conflict that may be gone the next time; else an error of no class there. */
    @Override
    public String getSqlState() {
        return is("WriteConflictError") ? "40001" : "HY000";
    }

    @Override
    public Map<String, String> getMessageParameters() {
        return Map.of("message", sentence);
    }

    @Override
    public synchronized Throwable fillInStackTrace() {
        return this;
    }

    /** What an exception says; many have no message, or one that names another. */
    static String reason(Throwable error) {
        Throwable last = error;
        while (last.getMessage() == null && last.getCause() != null) last = last.getCause();
        return last.getMessage() == null ? last.getClass().getSimpleName() : last.getMessage();
    }
}
