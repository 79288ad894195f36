package transactionmetastore.spark.planner;

import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.thrift.TException;

/** Where the planner is: the metastore says it, so that users set nothing but hive.metastore.uris. It may move. */
final class PlannerAddress {
    private static final String SETTING = "hive.metastore.planner.uri";

    private final String fixed;
    private final Configuration settings;
    private String known;

    /** "fixed": where it is, or "" where the metastore of these settings says it. */
    PlannerAddress(String fixed, Configuration settings) {
        this.fixed = fixed;
        this.settings = settings;
    }

    /** The address, asked for once; by Hive's own client, with whatever identity and TLS that uses. */
    synchronized String get() {
        if (known == null) known = (fixed.isEmpty() ? asked() : fixed).replaceAll("/+$", "");
        return known;
    }

    /** Nobody answers at an address: whether the metastore, asked once more, names another one. */
    synchronized boolean hasMovedFrom(String silent) {
        if (!fixed.isEmpty()) return false;
        if (silent.equals(known)) known = null;
        return !get().equals(silent);
    }

    /** Of the first metastore that says it. Each is asked by itself: what it says may be of its own host. */
    private String asked() {
        AcidException refusal = null;
        for (String metastore : settings.getTrimmedStrings("hive.metastore.uris")) {
            try {
                return asked(metastore);
            } catch (AcidException error) {
                if (refusal == null) refusal = error;
                else refusal.addSuppressed(error);
            }
        }
        throw refusal != null ? refusal : new AcidException("NO_METASTORE", "hive.metastore.uris is not set: ACID tables are in a "
            + "metastore that runs as a service. Set spark.hadoop.hive.metastore.uris.");
    }

    private String asked(String metastore) {
        HiveConf conf = new HiveConf(settings, HiveMetaStoreClient.class);
        conf.set("hive.metastore.uris", metastore);
        HiveMetaStoreClient client = null;
        try {
            client = new HiveMetaStoreClient(conf);
            String address = client.getConfigValue(SETTING, "");
            if (address != null && !address.isEmpty()) return reachable(address, metastore);
        } catch (TException | RuntimeException error) {  // without a trust store it is the latter
            throw new AcidException("METASTORE_UNREACHABLE", "The metastore " + metastore + " did not say where its planner is: "
                + AcidException.reason(error), error);
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
        String beside = URI.create(metastore).getHost();
        return planner.getScheme() + "://" + beside + ":" + planner.getPort();
    }
}
