package transactionmetastore.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.Arrays;

/**
 * Whose changes a scan reads: those of write ids above "after" and of "late" ones. "replacedBy": of each directory the write id
 * that overwrote it, or null; when "committed" write ids were, in microseconds, as far as that is known.
 */
record ChangeFeed(long after, long[] late, Long[] replacedBy, long[] committed, long[] micros) implements Serializable {
    private static final long serialVersionUID = 1L;

    /** Null of a scan that reads no changes. */
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

    /** When it was committed; null where nobody knows any more. */
    Long time(long writeId) {
        int place = Arrays.binarySearch(committed, writeId);
        return place < 0 ? null : Long.valueOf(micros[place]);
    }
}
