import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.Collections;
import java.util.HashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.ArrayWritable;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileStatusCache;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.SharedInMemoryCache;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Scans over files that are listed already, by any of Spark's formats. Exists in the driver only. */
public class ListedFiles {
    /** "files": an array of FileStatus as Hadoop writes one, "root": a path that is theirs alone. */
    public static Dataset scan(
            SparkSession spark, String root, byte[] files, StructType schema, FileFormat format, HashMap options)
            throws IOException {
        FileStatus[] listed = listed(files, spark.sparkContext().hadoopConfiguration());
        FileStatusCache cache = new SharedInMemoryCache(1L << 40, -1L).createForNewClient();
        cache.putLeafFiles(new Path(root), listed);
        HashMap deep = new HashMap();
        deep.put("recursiveFileLookup", "true");
        InMemoryFileIndex index = new InMemoryFileIndex(
            spark, PythonUtils.toSeq(Collections.singletonList(new Path(root))), PythonUtils.toScalaMap(deep),
            scala.Option.empty(), cache, scala.Option.empty(), scala.Option.empty());
        if (index.allFiles().size() != listed.length) {
            throw new IllegalStateException("Spark does not take the files that it is given");
        }
        return spark.baseRelationToDataFrame(new HadoopFsRelation(
            index, new StructType(new StructField[0]), schema, scala.Option.empty(), format,
            PythonUtils.toScalaMap(options), spark));
    }

    private static FileStatus[] listed(byte[] files, Configuration settings) throws IOException {
        ArrayWritable found = new ArrayWritable(FileStatus.class);
        found.readFields(new DataInputStream(new ByteArrayInputStream(files)));
        FileStatus[] listed = new FileStatus[found.get().length];
        HashMap systems = new HashMap();
        for (int place = 0; place < listed.length; ++place) {
            listed[place] = (FileStatus) found.get()[place];
            Path path = listed[place].getPath();
            String root = path.toUri().getScheme() + "://" + path.toUri().getAuthority();
            if (!systems.containsKey(root)) systems.put(root, path.getFileSystem(settings));
            listed[place].setPath(((FileSystem) systems.get(root)).makeQualified(path));
        }
        return listed;
    }
}
