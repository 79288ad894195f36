package transactionmetastore.spark.write;

import java.io.Serializable;
import org.apache.hadoop.conf.Configuration;
import transactionmetastore.spark.table.TableShape;

/**
 * The settings that every task of a write needs. "staging": the place to write, if "inPlace", the names of uploads, is
 * null; "zone": the time zone of timestamps' texts; "isOrdered": rows come in the order of their files, so that only one
 * file is open at a time; "mayMove": new versions of rows may have values that belong elsewhere; "rules": the constraints;
 * "plain": the writer of an insert-only table's files, else null.
 */
record TaskSettings(TableShape table, String staging, FinalNames inPlace, long writeId, int statement, String zone, boolean isOrdered,
                    boolean mayMove, RowRules rules, PlainFiles plain, Hadoop hadoop) implements Serializable {
    /** Hadoop's settings, as a task receives them. */
    interface Hadoop extends Serializable {
        Configuration settings();
    }
}
