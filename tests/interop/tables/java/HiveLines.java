import java.io.Reader;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.serde2.AbstractSerDe;
import org.apache.hadoop.io.Text;

/** Lines that one SerDe of Hive 4.0.1 reads, written as lines by another: file, its properties, new file, its properties. */
public class HiveLines {
    public static void main(String[] arguments) throws Exception {
        AbstractSerDe from = serde(arguments[1]), to = serde(arguments[3]);
        try (Writer out = Files.newBufferedWriter(Path.of(arguments[2]))) {
            for (String line : Files.readString(Path.of(arguments[0])).split("\n")) {
                Object row = from.deserialize(new Text(line));
                out.write(to.serialize(row, from.getObjectInspector()).toString() + "\n");
            }
        }
    }

    private static AbstractSerDe serde(String file) throws Exception {
        Properties told = new Properties();
        try (Reader in = Files.newBufferedReader(Path.of(file), StandardCharsets.US_ASCII)) {
            told.load(in);
        }
        AbstractSerDe made = (AbstractSerDe) Class.forName(told.getProperty("serialization.lib")).getConstructor().newInstance();
        made.initialize(new Configuration(), told, null);
        return made;
    }
}
