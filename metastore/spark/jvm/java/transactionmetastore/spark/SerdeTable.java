package transactionmetastore.spark;

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

/**
 * Hive's classes that read and write a table's files, and their properties.
 *
 * "text": properties as java.util.Properties reads them; those of HiveStorage in metastore/acid_tables/serde_storage.py.
 */
public class SerdeTable implements Serializable {
    private static final long serialVersionUID = 1L;
    public final String text;

    public SerdeTable(String text) {
        this.text = text;
    }

    /** A new object for each use: some SerDes write into their properties. */
    public Properties properties() {
        Properties properties = new Properties();
        try {
            properties.load(new StringReader(text));
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
        return properties;
    }

    /** Whether a row is a whole record of the file, as a single text, which no SerDe decodes. */
    public boolean isRaw() {
        return properties().getProperty("acid.raw") != null;
    }

    public int header() {
        return Integer.parseInt(properties().getProperty("skip.header.line.count", "0").trim());
    }

    public Class<?> input() throws ClassNotFoundException {
        return load(properties().getProperty("acid.input"));
    }

    public TableDesc described() throws ClassNotFoundException {
        Class<?> output = load(properties().getProperty("acid.output"));
        return new TableDesc(input().asSubclass(InputFormat.class), output, properties());
    }

    @SuppressWarnings("deprecation")  // the other way is not in the Hive of every Spark
    public AbstractSerDe serde(Configuration settings, Properties properties)
            throws ReflectiveOperationException, SerDeException {
        AbstractSerDe made = (AbstractSerDe) serdeClass(properties.getProperty("serialization.lib"))
            .getDeclaredConstructor().newInstance();
        made.initialize(settings, properties);
        return made;
    }

    /** Hive's own class where there is any; Spark lacks those for JSON. */
    private static Class<?> serdeClass(String name) throws ClassNotFoundException {
        try {
            return load(name);
        } catch (ClassNotFoundException error) {
            boolean isJson = name.equals("org.apache.hadoop.hive.serde2.JsonSerDe")
                || name.equals("org.apache.hive.hcatalog.data.JsonSerDe");
            if (!isJson) throw error;
            return JsonLines.class;
        }
    }

    private static Class<?> load(String name) throws ClassNotFoundException {
        try {
            return Class.forName(name, true, Thread.currentThread().getContextClassLoader());
        } catch (ClassNotFoundException error) {
            return Class.forName(name, true, SerdeTable.class.getClassLoader());
        }
    }

    /** Why these classes cannot be used for the table's columns; null when they can. */
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
