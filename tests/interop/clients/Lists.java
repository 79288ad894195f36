import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.common.ValidReadTxnList;
import org.apache.hadoop.hive.common.ValidTxnList;
import org.apache.hadoop.hive.metastore.IMetaStoreClient;

/**
 * What the classes of one generation of Hive make of the server's transaction lists, and read of texts that we wrote:
 * arguments are the server, then CLASS=TEXT; prints one fact a line.
 */
public class Lists {
    public static void main(String[] arguments) throws Exception {
        IMetaStoreClient client = connected(arguments[0]);
        ValidTxnList all = client.getValidTxns();
        say("txns", all.writeToString());
        say("txnsAgain", Arrays.toString(((ValidTxnList) read(ValidReadTxnList.class, all.writeToString())).getInvalidTransactions()));
        say("seen", seen(all));
        say("mine", client.getValidTxns(3).writeToString());
        for (Method one : IMetaStoreClient.class.getMethods()) {
            if (one.getName().equals("getValidWriteIds") && one.getParameterCount() == 2 && one.getParameterTypes()[0] == List.class) {
                say("writeIds", one.invoke(client, Arrays.asList("db.t"), all.writeToString()));
            }
        }
        for (String text : Arrays.asList(arguments).subList(1, arguments.length)) {
            String[] parts = text.split("=", 2);
            say(parts[0], read(Class.forName("org.apache.hadoop.hive.common." + parts[0]), parts[1]));
        }
        client.close();
    }

    private static List<Long> seen(ValidTxnList list) {
        List<Long> valid = new ArrayList<>();
        for (long id = 1; id <= list.getHighWatermark() + 1; id++) {
            if (list.isTxnValid(id)) {
                valid.add(id);
            }
        }
        return valid;
    }

    /** By the constructor that takes a text, or as 4.1 and later want it. */
    private static Object read(Class<?> type, String text) throws Exception {
        try {
            return type.getMethod("fromValue", String.class).invoke(null, text);
        } catch (NoSuchMethodException before41) {
            return type.getConstructor(String.class).newInstance(text);
        }
    }

    private static IMetaStoreClient connected(String uri) throws Exception {
        Configuration conf;
        try {
            conf = (Configuration) Class.forName("org.apache.hadoop.hive.metastore.conf.MetastoreConf")
                .getMethod("newMetastoreConf").invoke(null);
        } catch (ClassNotFoundException before31) {
            conf = (Configuration) Class.forName("org.apache.hadoop.hive.conf.HiveConf").getConstructor().newInstance();
        }
        conf.set("hive.metastore.uris", uri);
        conf.set("hive.metastore.client.capability.check", "false");
        for (Constructor<?> one : Class.forName("org.apache.hadoop.hive.metastore.HiveMetaStoreClient").getConstructors()) {
            if (one.getParameterCount() == 1 && one.getParameterTypes()[0].isInstance(conf)) {
                return (IMetaStoreClient) one.newInstance(conf);
            }
        }
        throw new IllegalStateException("the client has no constructor for " + conf.getClass());
    }

    private static void say(String what, Object value) {
        System.out.println("fact " + what + " = " + value);
    }
}
