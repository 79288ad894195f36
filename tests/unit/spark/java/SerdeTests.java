package transactionmetastore.spark.files;

import static transactionmetastore.spark.files.Tests.same;

import java.io.File;
import java.io.StringWriter;
import java.nio.file.Files;
import java.util.List;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.Text;

/** Classes that a definition names, and the lines that one of ours reads. */
public final class SerdeTests {
    private final File directory;
    private final Configuration settings = new Configuration();

    public SerdeTests(File directory) {
        this.directory = directory;
        settings.setBoolean("fs.file.impl.disable.cache", true);
    }

    public void classesOfADefinitionAreListedAndNotInitialisedBefore() throws Exception {
        String ours = SerdeTests.class.getName() + "$Trap";
        for (String known : List.of("acid.input", "acid.output", "serialization.lib")) {
            Properties properties = textTable();
            properties.setProperty(known, ours);
            StringWriter text = new StringWriter();
            properties.store(text, "");
            String reason = new SerdeTable(text.toString()).refusal(settings);
            same(true, reason.contains("none that are known to store tables"));
        }
        try {
            SerdeTable.load(ours, org.apache.hadoop.mapred.InputFormat.class);
            throw new AssertionError("a class of another kind was loaded");
        } catch (IllegalArgumentException error) {
            same(ours + " is no org.apache.hadoop.mapred.InputFormat", error.getMessage());
        }
        same(null, System.getProperty("acid.trap"));
        StringWriter text = new StringWriter();
        textTable().store(text, "");
        same(null, new SerdeTable(text.toString()).refusal(settings));
    }

    public void recordsOfASequenceFileAreOfKnownClasses() throws Exception {
        Path path = new Path(new File(directory, "records").toURI());
        for (Class<?> known : List.of(Text.class, org.apache.hadoop.io.BytesWritable.class)) {
            SequenceFile.createWriter(settings, SequenceFile.Writer.file(path),
                SequenceFile.Writer.keyClass(org.apache.hadoop.io.BytesWritable.class), SequenceFile.Writer.valueClass(known)).close();
            SerdeReader.requireKnownRecords(path, settings);
        }
        SequenceFile.createWriter(settings, SequenceFile.Writer.file(path),
            SequenceFile.Writer.keyClass(org.apache.hadoop.io.ObjectWritable.class), SequenceFile.Writer.valueClass(Text.class)).close();
        try {
            SerdeReader.requireKnownRecords(path, settings);
            throw new AssertionError("an object of any class was made");
        } catch (java.io.IOException error) {
            same(true, error.getMessage().contains("records of org.apache.hadoop.io.ObjectWritable"));
        }
        Files.writeString(java.nio.file.Path.of(directory.getPath(), "text"), "no sequence file");
        SerdeReader.requireKnownRecords(new Path(new File(directory, "text").toURI()), settings);
    }

    /** Runs code when it is initialised, as any class of a jar may. */
    public static final class Trap {
        static {
            System.setProperty("acid.trap", "sprung");
        }
    }

    private static Properties textTable() {
        Properties properties = new Properties();
        properties.setProperty("acid.input", "org.apache.hadoop.mapred.TextInputFormat");
        properties.setProperty("acid.output", "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat");
        properties.setProperty("serialization.lib", "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe");
        properties.setProperty("columns", "a,b");
        properties.setProperty("columns.types", "int:string");
        return properties;
    }

    public void aLineOfJsonIsARowWhateverItsNamesLookLike() throws Exception {
        JsonLines serde = new JsonLines();
        Properties table = new Properties();
        table.setProperty("columns", "a,b,c");
        table.setProperty("columns.types", "int:map<string,array<double>>:struct<x:string,y:boolean>");
        serde.initialize(settings, table);
        Object row = serde.deserialize(new Text("{\"A\": 1, \"other\": [], \"_col1\": {\"k\": [1.5, null]}, \"c\": {\"Y\": true}}"));
        same("[1, {k=[1.5, null]}, [null, true]]", row.toString());
        same("{\"a\":1,\"b\":{\"k\":[1.5,null]},\"c\":{\"x\":null,\"y\":true}}",
             serde.serialize(row, serde.getObjectInspector()).toString());
    }
}
