package transactionmetastore.spark.stream;

import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.util.function.Supplier;
import transactionmetastore.spark.planner.AcidException;

/** A query that is stopped interrupts its thread: Spark takes what is thrown then for a stop by its class alone. */
final class Interruption {
    private Interruption() {}

    /** What "call" answers; where it was interrupted, an exception that Spark takes for that. */
    static <R> R asStop(Supplier<R> call) {
        try {
            return call.get();
        } catch (AcidException error) {
            if (!error.is("INTERRUPTED")) throw error;
            InterruptedIOException stopped = new InterruptedIOException(error.getMessage());
            stopped.initCause(error);
            throw new UncheckedIOException(stopped);
        }
    }
}
