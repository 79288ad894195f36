package transactionmetastore.spark.planner;

import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.thrift.TException;

/** The planner's address. The metastore knows it, so that users set only hive.metastore.uris. It may change. */
final class PlannerAddress {
    private static final String SETTING = "hive.metastore.planner.uri";

    private final String fixed;
    private final Configuration settings;
    private String known;

    /** Creates an address. "fixed": the address, or "" to ask the metastore of these settings. */
    PlannerAddress(String fixed, Configuration settings) {
        this.fixed = fixed;
        this.settings = settings;
    }

    /** Returns the address. It is asked for once, by Hive's own client with its identity and TLS. */
    synchronized String get() {
        if (known == null) known = (fixed.isEmpty() ? asked() : fixed).replaceAll("/+$", "");
        return known;
    }

    /** Returns true if the metastore, asked again, names another address than "silent", where no planner answers. */
    synchronized boolean hasMovedFrom(String silent) {
        if (!fixed.isEmpty()) return false;
        if (silent.equals(known)) known = null;
        return !get().equals(silent);
    }

    /** Asks each metastore until one has an address. Each is asked separately, since the address may be one of its own host. */
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
        } catch (TException | RuntimeException error) {  // a missing trust store raises a RuntimeException
            throw new AcidException("METASTORE_UNREACHABLE", "The metastore " + metastore + " did not say where its planner is: "
                + AcidException.reason(error), error);
        } finally {
            if (client != null) client.close();
        }
        throw new AcidException("NO_PLANNER", "The metastore " + metastore + " names no planner, without which Spark cannot "
            + "read ACID tables: start `metastore planner`, or set " + SETTING + " of the metastore.");
    }

    /** Returns the address for clients: a planner that listens on all addresses is on the metastore's host. */
    private static String reachable(String address, String metastore) {
        URI planner = URI.create(address);
        if (!planner.getHost().equals("0.0.0.0") && !planner.getHost().equals("[::]")) return address;
        String beside = URI.create(metastore).getHost();
        return planner.getScheme() + "://" + beside + ":" + planner.getPort();
    }
}
