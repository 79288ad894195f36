package transactionmetastore.spark.files;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.List;
import java.util.Map;

/** Messages between Python and Java, as JSON. metastore/spark/jvm/messages.py is the other side. */
public final class Messages {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Messages() {}

    /** Returns the text of a value of lists, maps with text keys, texts, numbers and truth values. */
    public static String text(Object value) {
        try {
            return MAPPER.writeValueAsString(value);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException(error);
        }
    }

    public static List<?> list(String text) {
        return (List<?>) value(text);
    }

    public static Map<?, ?> map(String text) {
        return (Map<?, ?>) value(text);
    }

    /** Returns several messages as one list. */
    public static String listed(List<?> texts) {
        StringBuilder list = new StringBuilder("[");
        for (Object text : texts) list.append(list.length() == 1 ? "" : ",").append(text);
        return list.append("]").toString();
    }

    private static Object value(String text) {
        try {
            return MAPPER.readValue(text, Object.class);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException(error);
        }
    }
}
