import java.lang.reflect.Constructor;
import java.util.Arrays;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.IMetaStoreClient;

/** Hive's own client asks for the tables of database d that the arguments name, before and after it wants no check; prints what it was told. */
public class Tables {
    public static void main(String[] arguments) throws Exception {
        IMetaStoreClient client = connected(arguments[0]);
        for (int place = 1; place < arguments.length; place++) {
            String table = arguments[place];
            say(table, () -> client.getTable("d", table).getTableName());
            say(table + ".listed", () -> client.getTables("d", "*").contains(table));
            say(table + ".byName", () -> client.getTableObjectsByName("d", Arrays.asList(table)).size());
            client.setMetaConf("hive.metastore.client.capability.check", "false");
            say(table + ".unchecked", () -> client.getTable("d", table).getTableName());
            client.setMetaConf("hive.metastore.client.capability.check", "true");
        }
        client.close();
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
        for (Constructor<?> one : Class.forName("org.apache.hadoop.hive.metastore.HiveMetaStoreClient").getConstructors()) {
            if (one.getParameterCount() == 1 && one.getParameterTypes()[0].isInstance(conf)) {
                return (IMetaStoreClient) one.newInstance(conf);
            }
        }
        throw new IllegalStateException("the client has no constructor for " + conf.getClass());
    }

    private static void say(String what, Callable<Object> step) {
        String told;
        try {
            told = String.valueOf(step.call());
        } catch (Exception error) {
            told = error.getClass().getSimpleName() + ": " + error.getMessage();
        }
        System.out.println("fact " + what + " = " + told);
    }
}
