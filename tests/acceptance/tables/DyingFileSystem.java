import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * The local files of a driver, which kills its process group right before the n-th event of a kind ("test.dies.at": KIND:N).
 *
 * Kinds: "created", a file in staging; "moved", a file between directories of staging; "named", a directory that gets its final name.
 */
public final class DyingFileSystem extends LocalFileSystem {
    private static final Map<String, Integer> COUNTS = new ConcurrentHashMap<>();

    @Override
    public FSDataOutputStream create(Path path, FsPermission permission, boolean overwrite, int buffer, short copies, long block,
            Progressable progress) throws IOException {
        if (isStaged(path)) happens("created");
        return super.create(path, permission, overwrite, buffer, copies, block, progress);
    }

    @Override
    public boolean rename(Path from, Path to) throws IOException {
        if (isStaged(from)) happens(isStaged(to) ? "moved" : "named");
        return super.rename(from, to);
    }

    private static boolean isStaged(Path path) {
        return path.toString().contains("/.acid_stage");
    }

    private void happens(String kind) {
        if (!getConf().get("test.dies.at").equals(kind + ":" + COUNTS.merge(kind, 1, Integer::sum))) return;
        try {
            String group = Files.readString(java.nio.file.Path.of("/proc/self/stat")).replaceFirst(".*\\) ", "").split(" ")[2];
            new ProcessBuilder("kill", "-9", "--", "-" + group).start().waitFor();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
        throw new IllegalStateException("it was not killed");
    }
}
