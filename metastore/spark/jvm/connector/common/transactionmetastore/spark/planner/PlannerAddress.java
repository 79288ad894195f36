package transactionmetastore.spark.planner;

import java.net.URI;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.thrift.TException;

/** Where the planner is: the metastore says it, so that users set nothing but hive.metastore.uris. */
final class PlannerAddress {
    private static final String SETTING = "hive.metastore.planner.uri";
    private static final Map<String, String> KNOWN = new ConcurrentHashMap<>();

    private PlannerAddress() {}

    /** The address, asked for once for each metastore; by Hive's own client, with whatever identity and TLS that uses. */
    static String from(Configuration settings) {
        String metastore = settings.get("hive.metastore.uris", "");
        if (metastore.isEmpty()) {
            throw new AcidException("NO_METASTORE", "hive.metastore.uris is not set: ACID tables are in a metastore that "
                + "runs as a service. Set spark.hadoop.hive.metastore.uris.");
        }
        return KNOWN.computeIfAbsent(metastore, uris -> asked(uris, settings));
    }

    private static String asked(String metastore, Configuration settings) {
        HiveConf conf = new HiveConf(settings, HiveMetaStoreClient.class);
        HiveMetaStoreClient client = null;
        try {
            client = new HiveMetaStoreClient(conf);
            String address = client.getConfigValue(SETTING, "");
            if (address != null && !address.isEmpty()) return reachable(address, metastore);
        } catch (TException error) {
            throw new AcidException("METASTORE_UNREACHABLE",
                "The metastore " + metastore + " did not say where its planner is: " + error.getMessage(), error);
        } finally {
            if (client != null) client.close();
        }
        throw new AcidException("NO_PLANNER", "The metastore " + metastore + " names no planner, without which Spark cannot "
            + "read ACID tables: start `metastore planner`, or set " + SETTING + " of the metastore.");
    }

    /** A planner that listens on all addresses of its host is beside the metastore. */
    private static String reachable(String address, String metastore) {
        URI planner = URI.create(address);
        if (!planner.getHost().equals("0.0.0.0") && !planner.getHost().equals("[::]")) return address;
        String beside = URI.create(metastore.split(",")[0].trim()).getHost();
        return planner.getScheme() + "://" + beside + ":" + planner.getPort();
    }

    /** It could not be reached: the next one who asks gets what the metastore says then. */
    static void forget() {
        KNOWN.clear();
    }
}
