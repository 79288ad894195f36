package transactionmetastore.spark.files;

import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDate;
import java.util.Date;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.sources.Not;
import scala.Product;
import scala.collection.Iterator;

/**
 * Conditions in a form for which ORC skips no matching row and does not fail.
 *
 * ORC's statistics order -0.0 below 0.0, while Spark takes both for equal. ORC fails on a NULL in a list of values. ORC
 * sends conditions to the task by Kryo, which writes a Timestamp as if it were a Date and loses the part below a
 * millisecond; so an upper bound is raised to the next millisecond. A date or time before 1582-10-15 is not passed on: ORC
 * compares its name in one calendar with statistics in the other, up to ten days away. A later one is after all of those in
 * either calendar. Elsewhere such a time is passed on only where an earlier time finds more: as a lower bound that no NOT
 * reverses.
 */
public final class OrcConditions {
    private static final int NANOS_OF_MILLISECOND = 1_000_000;
    private static final Timestamp FIRST_GREGORIAN = Timestamp.valueOf("1582-10-15 00:00:00");

    private OrcConditions() {}

    /** Returns the part of a condition that ORC may use: the same, a wider condition, or null for none. */
    public static Filter shown(Filter condition) {
        Filter shown = wider(condition);
        return hasUnfit(shown, true) ? null : shown;
    }

    private static Filter wider(Filter condition) {
        if (condition instanceof EqualTo) {
            EqualTo equal = (EqualTo) condition;
            Object end = nextMillisecond(equal.value());
            if (end == null) return condition;
            return new And(new GreaterThanOrEqual(equal.attribute(), equal.value()), new LessThan(equal.attribute(), end));
        }
        if (condition instanceof LessThan || condition instanceof LessThanOrEqual) {
            Product bound = (Product) condition;
            Object end = nextMillisecond(bound.productElement(1));
            return end == null ? condition : new LessThan((String) bound.productElement(0), end);
        }
        return condition;
    }

    /** Returns the next whole millisecond after a time between two milliseconds; null for other values. */
    private static Object nextMillisecond(Object value) {
        if (!isBetweenMilliseconds(value)) return null;
        if (value instanceof Timestamp) return new Timestamp(((Timestamp) value).getTime() + 1);
        return Instant.ofEpochMilli(((Instant) value).toEpochMilli() + 1);
    }

    private static boolean isBetweenMilliseconds(Object value) {
        if (value instanceof Timestamp) return ((Timestamp) value).getNanos() % NANOS_OF_MILLISECOND != 0;
        return value instanceof Instant && ((Instant) value).getNano() % NANOS_OF_MILLISECOND != 0;
    }

    private static boolean hasUnfit(Object part, boolean mayBeEarlier) {
        if (part == null || isBeforeGregorian(part)) return true;
        if (part instanceof Double || part instanceof Float) return ((Number) part).doubleValue() == 0;
        if (isBetweenMilliseconds(part)) return !mayBeEarlier;
        if (part instanceof Object[]) {
            for (Object each : (Object[]) part) if (hasUnfit(each, mayBeEarlier)) return true;
        }
        if (!(part instanceof Filter)) return false;
        boolean isBound = isOfOthers((Filter) part) || part instanceof GreaterThan || part instanceof GreaterThanOrEqual;
        boolean areBounds = mayBeEarlier && isBound && !(part instanceof Not);
        Iterator<Object> parts = ((Product) part).productIterator();
        while (parts.hasNext()) if (hasUnfit(parts.next(), areBounds)) return true;
        return false;
    }

    private static boolean isBeforeGregorian(Object value) {
        if (value instanceof Date) return ((Date) value).getTime() < FIRST_GREGORIAN.getTime();
        if (value instanceof Instant) return ((Instant) value).isBefore(FIRST_GREGORIAN.toInstant());
        return value instanceof LocalDate && ((LocalDate) value).isBefore(FIRST_GREGORIAN.toLocalDateTime().toLocalDate());
    }

    private static boolean isOfOthers(Filter condition) {
        return ((Product) condition).productElement(0) instanceof Filter;
    }
}
