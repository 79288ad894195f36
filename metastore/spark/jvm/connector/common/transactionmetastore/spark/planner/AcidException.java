package transactionmetastore.spark.planner;

import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkRuntimeException;
import scala.collection.immutable.Map.Map1;

/**
 * A refusal, in a sentence for the user. "condition": the error class, one of metastore/errors.py if the metastore raised
 * it.
 *
 * It extends one of Spark's own exceptions, which PySpark, Spark Connect and JDBC show by their message alone. The place in
 * our code tells a user nothing, so the exception has no stack trace of its own; its cause has one.
 */
public final class AcidException extends SparkRuntimeException {
    private static final long serialVersionUID = 1L;
    private static final String OF_SPARK = "INTERNAL_ERROR";  // a class that takes any message: Spark knows none of ours

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

    /** Returns the SQLSTATE 40001 for a lost write conflict, which may succeed when run again; HY000 for all others. */
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

    /** Returns the text of an exception; many have no message, or one that only names another exception. */
    static String reason(Throwable error) {
        Throwable last = error;
        while (last.getMessage() == null && last.getCause() != null) last = last.getCause();
        return last.getMessage() == null ? last.getClass().getSimpleName() : last.getMessage();
    }
}
