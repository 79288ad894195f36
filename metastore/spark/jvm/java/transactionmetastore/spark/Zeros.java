package transactionmetastore.spark;

import org.apache.spark.sql.sources.Filter;
import scala.Product;
import scala.collection.Iterator;

/** Conditions that Spark and ORC answer differently. */
public final class Zeros {
    private Zeros() {}

    /** To ORC's statistics -0.0 is less than 0.0, to Spark they are equal: what is pushed must not tell them apart. */
    public static boolean isIn(Filter condition) {
        return isInAny(condition);
    }

    private static boolean isInAny(Object part) {
        if (part instanceof Double || part instanceof Float) return ((Number) part).doubleValue() == 0;
        if (part instanceof Object[]) {
            for (Object each : (Object[]) part) if (isInAny(each)) return true;
        }
        if (part instanceof Filter) {
            Iterator<Object> parts = ((Product) part).productIterator();
            while (parts.hasNext()) if (isInAny(parts.next())) return true;
        }
        return false;
    }
}
