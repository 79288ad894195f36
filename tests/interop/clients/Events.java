import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.Comparator;
import org.apache.hadoop.hive.metastore.messaging.MessageDeserializer;
import org.apache.thrift.TBase;
import org.apache.thrift.TSerializer;
import org.apache.thrift.protocol.TJSONProtocol;

/**
 * Hive's deserializer of this version on messages: the arguments are the deserializer's class and a file of lines, each the
 * type of an event and its message in base64. Tells the message and the objects that Hive has read.
 */
public class Events {
    public static void main(String[] arguments) throws Exception {
        MessageDeserializer reader = (MessageDeserializer) deserializer(arguments[1]);
        int line = 0;
        for (String text : java.nio.file.Files.readAllLines(java.nio.file.Paths.get(arguments[2]))) {
            String[] parts = text.split(" ");
            Method getter = getter(parts[0]);
            if (getter == null) {
                say(line++, "unknown", parts[0]);
                continue;
            }
            String message = new String(Base64.getDecoder().decode(parts[1]), StandardCharsets.UTF_8);
            Object read = getter.invoke(reader, message);
            say(line, "message", read.toString());
            for (Method method : read.getClass().getMethods()) {
                if (method.getParameterCount() == 0 && method.getName().startsWith("get") && !method.getName().endsWith("Json")) {
                    objects(line, method.getName(), method.invoke(read));
                }
            }
            line++;
        }
    }

    private static Object deserializer(String name) throws Exception {
        java.lang.reflect.Constructor<?> made = Class.forName(name).getDeclaredConstructor();
        made.setAccessible(true);
        return made.newInstance();
    }

    /** Finds the deserializer's method for a type of events: CREATE_TABLE has getCreateTableMessage. */
    private static Method getter(String type) {
        String words = type.replace("_TBL_COL_STAT_EVENT", "TABLECOLUMNSTAT").replace("_PART_COL_STAT_EVENT", "PARTITIONCOLUMNSTAT")
            .replace("_", "");
        return Arrays.stream(MessageDeserializer.class.getMethods())
            .filter(one -> one.getName().equalsIgnoreCase("get" + words + "Message")).min(Comparator.comparing(Method::getName))
            .orElse(null);
    }

    private static void objects(int line, String name, Object value) throws Exception {
        if (value instanceof TBase) {
            say(line, name, new TSerializer(new TJSONProtocol.Factory()).toString((TBase) value));
        } else if (value instanceof Iterable) {
            for (Object one : (Iterable<?>) value) {
                if (one instanceof TBase) {
                    objects(line, name, one);
                }
            }
        }
    }

    private static void say(int line, String what, String value) {
        System.out.println("fact " + line + " " + what + " = " + Base64.getEncoder().encodeToString(value.getBytes(StandardCharsets.UTF_8)));
    }
}
