package transactionmetastore.spark;

import java.sql.Timestamp;
import java.time.Instant;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.Not;
import scala.Product;
import scala.collection.Iterator;

/**
 * Conditions that ORC must not be shown, since it would skip rows that meet them, or fail.
 *
 * To its statistics -0.0 is less than 0.0, which Spark takes for equal. A NULL in a list of values is an error. Timestamps lose what is less
 * than a millisecond on their way to the task: only a lower bound may, and only where no NOT turns it around.
 */
public final class NotForOrc {
    private static final int NANOS_OF_MILLISECOND = 1_000_000;

    private NotForOrc() {}

    public static boolean isIn(Filter condition) {
        return isIn(condition, true);
    }

    private static boolean isIn(Object part, boolean mayBeEarlier) {
        if (part == null) return true;
        if (part instanceof Double || part instanceof Float) return ((Number) part).doubleValue() == 0;
        if (part instanceof Timestamp) return !mayBeEarlier && ((Timestamp) part).getNanos() % NANOS_OF_MILLISECOND != 0;
        if (part instanceof Instant) return !mayBeEarlier && ((Instant) part).getNano() % NANOS_OF_MILLISECOND != 0;
        if (part instanceof Object[]) {
            for (Object each : (Object[]) part) if (isIn(each, mayBeEarlier)) return true;
        }
        if (!(part instanceof Filter)) return false;
        boolean isBound = isOfOthers((Filter) part) || part instanceof GreaterThan || part instanceof GreaterThanOrEqual;
        boolean areBounds = mayBeEarlier && isBound && !(part instanceof Not);
        Iterator<Object> parts = ((Product) part).productIterator();
        while (parts.hasNext()) if (isIn(parts.next(), areBounds)) return true;
        return false;
    }

    private static boolean isOfOthers(Filter condition) {
        return ((Product) condition).productElement(0) instanceof Filter;
    }
}
