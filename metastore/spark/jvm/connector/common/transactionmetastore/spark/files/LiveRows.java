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

/** How many of the events of merged ranges a compaction would write, without writing them: what is deleted is left out as the writer does. */
public class LiveRows {
    private static final int RANGE = 0, OPERATION = 1, ORIGINAL = 2, BUCKET = 3, ROW_ID = 4;

    /**
     * "events": the number of their range (each range in a task), operation, and ROW__ID. "wanted": of each range, as JSON, the numbers
     * of rows whose ROW__IDs are asked for, ascending from 0. Returns of each range with events its number, the count of its rows, and
     * the ROW__IDs of those, as JSON.
     */
    @SuppressWarnings("unchecked")  // such functions are of Object
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

    /** Runs in the tasks. */
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
