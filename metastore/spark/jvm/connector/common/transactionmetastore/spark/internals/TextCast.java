package transactionmetastore.spark.internals;

import java.time.ZoneId;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.execution.datasources.PartitioningUtils;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;

/** Conversion between values of a type and texts, by Spark's CAST. */
public final class TextCast {
    private final DataType type;
    private final Option<String> zone;
    private final Expression text;

    /** Creates a conversion. "zone": the time zone of timestamps in texts. */
    public TextCast(DataType type, String zone) {
        this.type = type;
        this.zone = Option.apply(zone);
        this.text = Cast$.MODULE$.apply(new BoundReference(0, type, true), DataTypes.StringType, this.zone, false);
    }

    /** Returns the text of a value; null for NULL. */
    public UTF8String text(Object value) {
        return (UTF8String) text.eval(Rows.of(value));
    }

    /** Returns the value of a text; null for a text that is no value of the type. */
    public Object value(UTF8String of) {
        return Cast$.MODULE$.apply(Literal$.MODULE$.create(of, DataTypes.StringType), type, zone, false).eval(null);
    }

    /** Returns the value of a text in the name of a partition, as Spark parses it there. */
    public static Object partitionValue(DataType type, String text, ZoneId zone) {
        return PartitioningUtils.castPartValueToDesiredType(type, text, zone);
    }
}
