package transactionmetastore.spark.files;

import java.io.IOException;
import java.io.Serializable;
import java.io.StringReader;
import java.util.List;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.ql.plan.TableDesc;
import org.apache.hadoop.hive.serde2.AbstractSerDe;
import org.apache.hadoop.hive.serde2.SerDeException;
import org.apache.hadoop.hive.serde2.objectinspector.StructField;
import org.apache.hadoop.hive.serde2.objectinspector.StructObjectInspector;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;
import org.apache.hadoop.mapred.InputFormat;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.OutputFormat;
import transactionmetastore.spark.internals.SparkInternals;

/**
 * Hive's classes that read and write a table's files, and their properties.
 *
 * "text": properties in the format of java.util.Properties; those of HiveStorage in metastore/acid_tables/serde_storage.py.
 * A table's definition names the classes, so only listed ones are loaded, and none is initialised before its kind is
 * checked. The list is FORMATS (as in metastore/catalog/rules/storage_classes.py), and the classes that the operator of
 * this Spark adds.
 */
public class SerdeTable implements Serializable {
    private static final long serialVersionUID = 1L;
    /** The Spark setting with more classes: INPUT_FORMAT:OUTPUT_FORMAT:SERDE, separated by commas. */
    public static final String MORE = "spark.metastore.storage.classes";
    private static final String IO = "org.apache.hadoop.hive.ql.io.", SERDE = "org.apache.hadoop.hive.serde2.",
        MAPRED = "org.apache.hadoop.mapred.";
    private static final String[] OF_TEXT = {
        SERDE + "lazy.LazySimpleSerDe", SERDE + "OpenCSVSerde", SERDE + "RegexSerDe", SERDE + "MultiDelimitSerDe",
        "org.apache.hadoop.hive.contrib.serde2.MultiDelimitSerDe", SERDE + "JsonSerDe", "org.apache.hive.hcatalog.data.JsonSerDe"};
    /** Groups of input formats, output formats and SerDes that belong together. */
    private static final String[][][] FORMATS = {
        {{MAPRED + "TextInputFormat"}, {IO + "HiveIgnoreKeyTextOutputFormat", IO + "IgnoreKeyTextOutputFormat"}, OF_TEXT},
        {{MAPRED + "SequenceFileInputFormat"}, {IO + "HiveSequenceFileOutputFormat", MAPRED + "SequenceFileOutputFormat"}, OF_TEXT},
        {{MAPRED + "SequenceFileInputFormat"}, {IO + "HiveSequenceFileOutputFormat", MAPRED + "SequenceFileOutputFormat"},
            {SERDE + "lazybinary.LazyBinarySerDe"}},
        {{IO + "RCFileInputFormat"}, {IO + "RCFileOutputFormat"},
            {SERDE + "columnar.LazyBinaryColumnarSerDe", SERDE + "columnar.ColumnarSerDe"}},
        {{IO + "avro.AvroContainerInputFormat"}, {IO + "avro.AvroContainerOutputFormat"}, {SERDE + "avro.AvroSerDe"}},
        {{IO + "orc.OrcInputFormat"}, {IO + "orc.OrcOutputFormat"}, {IO + "orc.OrcSerde"}},
        {{IO + "parquet.MapredParquetInputFormat"}, {IO + "parquet.MapredParquetOutputFormat"}, {IO + "parquet.serde.ParquetHiveSerDe"}}};
    public final String text;

    public SerdeTable(String text) {
        this.text = text;
    }

    /** Returns the properties, a new object for each use: some SerDes write into it. */
    public Properties properties() {
        Properties properties = new Properties();
        try {
            properties.load(new StringReader(text));
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
        return properties;
    }

    /** Returns true if a row is a whole record of the file, as a single text that no SerDe decodes. */
    public boolean isRaw() {
        return properties().getProperty("acid.raw") != null;
    }

    public int header() {
        return Integer.parseInt(properties().getProperty("skip.header.line.count", "0").trim());
    }

    public Class<?> input() throws ClassNotFoundException {
        return load(listed().getProperty("acid.input"), InputFormat.class);
    }

    public TableDesc described() throws ClassNotFoundException {
        Class<?> output = load(listed().getProperty("acid.output"), OutputFormat.class);
        return new TableDesc(input().asSubclass(InputFormat.class), output, properties());
    }

    @SuppressWarnings("deprecation")  // the other method is not in the Hive of every Spark
    public AbstractSerDe serde(Configuration settings, Properties properties)
            throws ReflectiveOperationException, SerDeException {
        AbstractSerDe made = (AbstractSerDe) serdeClass(listed().getProperty("serialization.lib"))
            .getDeclaredConstructor().newInstance();
        made.initialize(settings, properties);
        return made;
    }

    /** Returns Hive's own class, or ours where Spark lacks it: the SerDes for JSON. */
    private static Class<?> serdeClass(String name) throws ClassNotFoundException {
        try {
            return load(name, AbstractSerDe.class);
        } catch (ClassNotFoundException error) {
            boolean isJson = name.equals("org.apache.hadoop.hive.serde2.JsonSerDe")
                || name.equals("org.apache.hive.hcatalog.data.JsonSerDe");
            if (!isJson) throw error;
            return JsonLines.class;
        }
    }

    /** Loads a class without initialising it. */
    static Class<?> load(String name, Class<?> kind) throws ClassNotFoundException {
        Class<?> found;
        try {
            found = Class.forName(name, false, Thread.currentThread().getContextClassLoader());
        } catch (ClassNotFoundException error) {
            found = Class.forName(name, false, SerdeTable.class.getClassLoader());
        }
        if (!kind.isAssignableFrom(found)) throw new IllegalArgumentException(name + " is no " + kind.getName());
        return found;
    }

    /** Returns the properties, after a check that their classes are listed. */
    private Properties listed() {
        Properties properties = properties();
        String input = properties.getProperty("acid.input"), output = properties.getProperty("acid.output"),
            serde = properties.getProperty("serialization.lib");
        boolean isListed = false;
        for (String[][] format : FORMATS) {
            isListed |= has(format[0], input) && has(format[1], output) && has(format[2], serde);
        }
        if (!isListed && !has(SparkInternals.setting(MORE).split(","), input + ":" + output + ":" + serde)) {
            throw new IllegalArgumentException("The classes " + input + ", " + output + ", " + serde
                + " are none that are known to store tables; whoever runs this Spark may add them (" + MORE + ")");
        }
        return properties;
    }

    private static boolean has(String[] names, String name) {
        for (String one : names) {
            if (one.trim().equals(name)) return true;
        }
        return false;
    }

    /** Returns the reason why these classes cannot be used for the table's columns; null if they can. */
    public String refusal(Configuration settings) {
        Properties properties = properties();
        String serde = properties.getProperty("serialization.lib");
        try {
            described();
            List<?> fields = ((StructObjectInspector) serde(new JobConf(settings), properties()).getObjectInspector())
                .getAllStructFieldRefs();
            List<?> declared = TypeInfoUtils.getTypeInfosFromTypeString(properties.getProperty("columns.types"));
            String[] names = properties.getProperty("columns").split(properties.getProperty("column.name.delimiter", ","));
            if (fields.size() != declared.size()) {
                return serde + " finds " + fields.size() + " columns where the table has " + declared.size();
            }
            for (int place = 0; place < names.length; ++place) {
                StructField field = (StructField) fields.get(place);
                String type = TypeInfoUtils.getTypeInfoFromObjectInspector(field.getFieldObjectInspector()).getTypeName();
                String wanted = ((TypeInfo) declared.get(place)).getTypeName();
                if (!field.getFieldName().equalsIgnoreCase(names[place])) {
                    return serde + " finds the column " + field.getFieldName() + " in the place of " + names[place];
                }
                if (!type.equalsIgnoreCase(wanted)) {
                    return "column " + names[place] + " is " + wanted + ", and " + serde + " makes it " + type;
                }
            }
            return null;
        } catch (ClassNotFoundException error) {
            return "Spark has no class " + error.getMessage() + ": give it the jar (spark.jars)";
        } catch (LinkageError error) {
            return serde + " does not go with the Hive in this Spark: " + error;
        } catch (Exception error) {
            return serde + " refuses the table: " + error;
        }
    }
}
