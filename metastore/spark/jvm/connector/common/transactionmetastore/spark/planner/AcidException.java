package transactionmetastore.spark.planner;

import java.util.Map;
import org.apache.spark.SparkThrowable;

/** A refusal, in a sentence for the user; "condition" is its class, one of metastore/errors.py where the metastore said it. */
public final class AcidException extends RuntimeException implements SparkThrowable {
    private static final long serialVersionUID = 1L;

    private final String condition;

    public AcidException(String condition, String message) {
        this(condition, message, null);
    }

    public AcidException(String condition, String message, Throwable cause) {
        super(message, cause);
        this.condition = condition;
    }

    public boolean is(String other) {
        return condition.equals(other);
    }

    @Override
    public String getCondition() {
        return condition;
    }

    @Override
    public Map<String, String> getMessageParameters() {
        return Map.of("message", getMessage());
    }
}
