package transactionmetastore.spark.write;

import java.io.Serializable;
import org.apache.hadoop.conf.Configuration;
import transactionmetastore.spark.table.TableShape;

/**
 * What every task of a write needs. "staging": where it may write, if "inPlace", the names of uploads, is null; "zone": in which timestamps are shown;
 * "isOrdered": rows come in the order of their files, so that only one is open at a time; "mayMove": new versions of
 * rows may have values that belong elsewhere; "rules": what rows must keep; "plain": makes the files of an insert-only table, else null.
 */
record TaskSettings(TableShape table, String staging, FinalNames inPlace, long writeId, int statement, String zone, boolean isOrdered,
                    boolean mayMove, RowRules rules, PlainFiles plain, Hadoop hadoop) implements Serializable {
    /** Hadoop's settings, however they come to the task. */
    interface Hadoop extends Serializable {
        Configuration settings();
    }
}
