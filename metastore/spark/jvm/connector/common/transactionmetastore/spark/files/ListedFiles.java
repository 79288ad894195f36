package transactionmetastore.spark.files;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.ArrayWritable;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionSpec;
import org.apache.spark.sql.execution.datasources.PartitionSpec$;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The files of a scan, listed already, for any of Spark's formats. It exists in the driver only. */
public class ListedFiles extends PartitioningAwareFileIndex {
    private final Path root;
    private final scala.collection.mutable.LinkedHashMap<Path, FileStatus> files =
        new scala.collection.mutable.LinkedHashMap<>();

    private ListedFiles(SparkSession spark, Map<String, String> options, Path root) {
        super(spark, PythonUtils.toScalaMap(options), scala.Option.empty(),
            PartitioningAwareFileIndex.$lessinit$greater$default$4());
        this.root = root;
    }

    /**
     * Returns a relation over the files. "files": an array of FileStatus in Hadoop's format, "root": a path that only these
     * files have.
     */
    public static HadoopFsRelation relation(
            SparkSession spark, String root, byte[] files, StructType schema, FileFormat format,
            Map<String, String> options) throws IOException {
        Map<String, String> deep = new HashMap<>();
        deep.put("recursiveFileLookup", "true");
        ListedFiles index = new ListedFiles(spark, deep, new Path(root));
        FileStatus[] listed = listed(files, spark.sparkContext().hadoopConfiguration());
        for (FileStatus file : listed) index.files.put(file.getPath(), file);
        if (index.allFiles().size() != listed.length) {
            throw new IllegalStateException("Spark does not take a list of files");
        }
        return new HadoopFsRelation(
            index, new StructType(new StructField[0]), schema, scala.Option.empty(), format,
            PythonUtils.toScalaMap(options), spark);
    }

    @Override
    public scala.collection.immutable.Seq<Path> rootPaths() {
        return PythonUtils.toSeq(Collections.singletonList(root));
    }

    @Override
    public scala.collection.mutable.LinkedHashMap<Path, FileStatus> leafFiles() {
        return files;
    }

    @Override
    public scala.collection.immutable.Map<Path, FileStatus[]> leafDirToChildrenFiles() {
        return PythonUtils.toScalaMap(new HashMap<Path, FileStatus[]>());
    }

    @Override
    public PartitionSpec partitionSpec() {
        return PartitionSpec$.MODULE$.emptySpec();
    }

    /** Does nothing, since a snapshot does not change. */
    @Override
    public void refresh() {}

    @Override
    public boolean equals(Object other) {
        return other instanceof ListedFiles && ((ListedFiles) other).root.equals(root);
    }

    @Override
    public int hashCode() {
        return root.hashCode();
    }

    private static FileStatus[] listed(byte[] files, Configuration settings) throws IOException {
        ArrayWritable array = new ArrayWritable(FileStatus.class);
        array.readFields(new DataInputStream(new ByteArrayInputStream(files)));
        FileStatus[] listed = new FileStatus[array.get().length];
        Map<String, FileSystem> systems = new HashMap<>();
        for (int place = 0; place < listed.length; ++place) {
            listed[place] = (FileStatus) array.get()[place];
            Path path = listed[place].getPath();
            String root = path.toUri().getScheme() + "://" + path.toUri().getAuthority();
            if (!systems.containsKey(root)) systems.put(root, path.getFileSystem(settings));
            Object system = systems.get(root);
            listed[place].setPath(((FileSystem) system).makeQualified(path));
        }
        return listed;
    }
}
