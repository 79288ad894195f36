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
        YarnConfiguration conf = new YarnConfiguration();
        String[] settings = {
            "yarn.nodemanager.resource.memory-mb", "3072", "yarn.scheduler.minimum-allocation-mb", "128",
            "yarn.nodemanager.pmem-check-enabled", "false", "yarn.nodemanager.vmem-check-enabled", "false",
            "yarn.scheduler.capacity.maximum-am-resource-percent", "0.5",
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
        try (OutputStream site = Files.newOutputStream(Path.of(arguments[0], "yarn-site.xml"))) {
            cluster.getConfig().writeXml(site);
        }
        answers.println("{\"answer\": \"ready\"}");
        System.in.read();
        System.exit(0);
    }
}
