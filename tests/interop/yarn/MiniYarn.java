import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/** A YARN of one node below this process's directory. The argument is the folder that gets its yarn-site.xml; it ends with its stdin. */
public class MiniYarn {
    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
        System.setOut(System.err);
        try {
            MiniYARNCluster cluster = started();
            try (OutputStream site = Files.newOutputStream(Path.of(arguments[0], "yarn-site.xml"))) {
                cluster.getConfig().writeXml(site);
            }
        } catch (Throwable problem) {
            problem.printStackTrace();
            System.exit(1); // threads of a cluster that did not start would keep us alive
        }
        answers.println("{\"answer\": \"ready\"}");
        System.in.read();
        System.exit(0);
    }

    private static MiniYARNCluster started() throws Exception {
        YarnConfiguration conf = new YarnConfiguration();
        String[] settings = {
            "yarn.scheduler.minimum-allocation-mb", "128",
            "yarn.nodemanager.pmem-check-enabled", "false", "yarn.nodemanager.vmem-check-enabled", "false",
            "yarn.scheduler.capacity.maximum-am-resource-percent", "0.5",
            "yarn.scheduler.capacity.root.queues", "default", "yarn.scheduler.capacity.root.default.capacity", "100",
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", "100"};
        for (int place = 0; place < settings.length; place += 2) {
            conf.set(settings[place], settings[place + 1]);
        }
        MiniYARNCluster cluster = new MiniYARNCluster("cluster", 1, 1, 1);
        cluster.init(conf);
        cluster.start();
        if (!cluster.waitForNodeManagersToConnect(60_000)) {
            throw new IllegalStateException("the node does not connect");
        }
        return cluster;
    }
}
