package transactionmetastore.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.Arrays;

/**
 * The changes that a scan reads: those of write ids above "after" and of "late" ones. "replacedBy": for each directory the
 * write id that overwrote it, or null. "committed": write ids, and "micros": the times of their commits in microseconds, as
 * far as these are known.
 */
record ChangeFeed(long after, long[] late, Long[] replacedBy, long[] committed, long[] micros) implements Serializable {
    private static final long serialVersionUID = 1L;

    /** Returns the changes in a plan; null for a scan that reads none. */
    static ChangeFeed of(JsonNode answer) {
        if (!answer.isObject()) return null;
        JsonNode late = answer.path("late"), times = answer.path("times"), replaced = answer.path("replaced_by");
        long[] numbers = new long[late.size()], committed = new long[times.size()], micros = committed.clone();
        for (int place = 0; place < numbers.length; ++place) numbers[place] = late.path(place).asLong();
        for (int place = 0; place < committed.length; ++place) {
            committed[place] = times.path(place).path(0).asLong();
            micros[place] = 1000L * times.path(place).path(1).asLong();
        }
        Long[] replacedBy = new Long[replaced.size()];
        for (int place = 0; place < replacedBy.length; ++place) {
            if (replaced.path(place).isNumber()) replacedBy[place] = replaced.path(place).asLong();
        }
        return new ChangeFeed(answer.path("after").asLong(), numbers, replacedBy, committed, micros);
    }

    boolean has(long writeId) {
        return writeId > after || Arrays.binarySearch(late, writeId) >= 0;
    }

    /** Returns the time at which a write id was committed; null if it is no longer known. */
    Long time(long writeId) {
        int place = Arrays.binarySearch(committed, writeId);
        return place < 0 ? null : Long.valueOf(micros[place]);
    }
}
