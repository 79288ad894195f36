package transactionmetastore.spark.stream;

import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.util.function.Supplier;
import transactionmetastore.spark.planner.AcidException;

/**
 * Conversion of an interrupted call into a stop. Stopping a query interrupts its thread, and Spark recognizes a stop by the
 * exception's class alone.
 */
final class Interruption {
    private Interruption() {}

    /** Runs "call" and returns its result; if it was interrupted, throws an exception that Spark recognizes as a stop. */
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
