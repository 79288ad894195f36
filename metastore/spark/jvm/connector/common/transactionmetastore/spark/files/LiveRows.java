package transactionmetastore.spark.files;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * A count of the events of merged ranges that a compaction would write. Nothing is written; deleted events are left out by
 * the writer's own code.
 */
public class LiveRows {
    private static final int RANGE = 0, OPERATION = 1, ORIGINAL = 2, BUCKET = 3, ROW_ID = 4;

    /**
     * Counts the events of each range. "events": the number of the range (each range is a task), operation, and ROW__ID.
     * "wanted": for each range, as JSON, the row numbers whose ROW__IDs are asked for, ascending from 0. Returns, as JSON,
     * for each range with events its number, the count of its rows, and those ROW__IDs.
     */
    @SuppressWarnings("unchecked")  // Spark's functions take Object here
    public String counted(RDD<?> events, String wanted) {
        List<?> ranges = Messages.list(wanted);
        long[][] numbers = new long[ranges.size()][];
        for (int range = 0; range < numbers.length; ++range) {
            List<?> ofRange = (List<?>) ranges.get(range);
            numbers[range] = new long[ofRange.size()];
            for (int place = 0; place < numbers[range].length; ++place) numbers[range][place] = ((Number) ofRange.get(place)).longValue();
        }
        JavaRDD<Object> rows = (JavaRDD<Object>) events.toJavaRDD();
        Object counter = new Counter(numbers);
        return Messages.listed(rows.mapPartitions((FlatMapFunction<Iterator<Object>, Object>) counter).collect());
    }

    /** The counter that runs in the tasks. */
    public static class Counter implements FlatMapFunction<Object, Object>, Serializable {
        private static final long serialVersionUID = 1L;
        private final long[][] wanted;

        public Counter(long[][] wanted) {
            this.wanted = wanted;
        }

        @Override
        public Iterator<Object> call(Object rows) {
            Iterator<?> events = (Iterator<?>) rows;
            AcidOrcWriter.Tally tally = new AcidOrcWriter.Tally(true);
            List<Object> keys = new ArrayList<>();
            long live = 0;
            int range = -1;
            while (events.hasNext()) {
                InternalRow event = (InternalRow) events.next();
                range = event.getInt(RANGE);
                long original = event.getLong(ORIGINAL), rowId = event.getLong(ROW_ID);
                int bucket = event.getInt(BUCKET);
                if (tally.leavesOut(event.getInt(OPERATION), original, bucket, rowId)) continue;
                if (keys.size() < wanted[range].length && wanted[range][keys.size()] == live) {
                    keys.add(new long[] {original, bucket, rowId});
                }
                ++live;
            }
            List<Object> counted = new ArrayList<>();
            if (range >= 0) counted.add(report(range, live, keys));
            return counted.iterator();
        }

        private static String report(int range, long live, List<Object> keys) {
            Map<String, Object> report = new LinkedHashMap<>();
            report.put("range", range);
            report.put("rows", live);
            report.put("keys", keys);
            return Messages.text(report);
        }
    }
}
