import java.lang.reflect.Method;
import java.util.ArrayList;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument;
import org.apache.orc.mapred.OrcInputFormat;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat;
import org.apache.spark.sql.execution.datasources.orc.OrcFilters;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;

/**
 * Spark's ORC source, with conditions on columns of "row" pushed down under the names that ORC looks for.
 *
 * ORC looks for the columns of a condition inside "row" when a file is an ACID one: for "id", where Spark says "row.id"
 * and finds nothing. Conditions on the event columns are not pushed at all: ORC would take a user's column of the same
 * name. Exists in the driver only: what runs in the tasks is Spark's own reader, with the condition in its settings.
 * Compiled by the compiler that Spark has for its queries, which knows no generics.
 */
public class AcidOrcFormat extends OrcFileFormat {
    private static final String ROW = "row";
    private static final String PREFIX = ROW + ".";

    public scala.Function1 buildReaderWithPartitionValues(
            SparkSession spark, StructType data, StructType partition, StructType required,
            scala.collection.immutable.Seq filters, scala.collection.immutable.Map options, Configuration settings) {
        ArrayList found = new ArrayList();
        for (int place = 0; place < filters.size(); ++place) {
            Filter filter = (Filter) filters.apply(place);
            if (isOfRow(filter)) found.add(renamed(filter));
        }
        StructType row = (StructType) data.apply(ROW).dataType();
        scala.Option argument = argument(row, found);
        if (SQLConf.get().orcFilterPushDown() && argument.isDefined()) {
            OrcInputFormat.setSearchArgument(settings, (SearchArgument) argument.get(), row.fieldNames());
        }
        return new OrcFileFormat().buildReaderWithPartitionValues(
            spark, data, partition, required, PythonUtils.toSeq(new ArrayList()), options, settings);
    }

    private static boolean isOfRow(Filter filter) {
        String[] names = filter.references();
        for (int place = 0; place < names.length; ++place) {
            if (!names[place].startsWith(PREFIX)) return false;
        }
        return names.length > 0;
    }

    /** The same filter with its columns named as inside "row". Filters are case classes; a column comes first. */
    private static Filter renamed(Filter filter) {
        scala.Product parts = (scala.Product) filter;
        Object[] values = new Object[parts.productArity()];
        for (int place = 0; place < values.length; ++place) {
            Object value = parts.productElement(place);
            if (value instanceof Filter) {
                value = renamed((Filter) value);
            } else if (place == 0) {
                value = ((String) value).substring(PREFIX.length());
            }
            values[place] = value;
        }
        try {
            return (Filter) filter.getClass().getConstructors()[0].newInstance(values);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Spark's conversion, which has got a third argument, an optional one, in version 4.3. */
    private static scala.Option argument(StructType row, ArrayList filters) {
        Method[] methods = OrcFilters.class.getMethods();
        for (int place = 0; place < methods.length; ++place) {
            if (!methods[place].getName().equals("createFilter")) continue;
            Object[] values = new Object[methods[place].getParameterCount()];
            values[0] = row;
            values[1] = PythonUtils.toSeq(filters);
            if (values.length > 2) values[2] = scala.Option.empty();
            try {
                return (scala.Option) methods[place].invoke(null, values);
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error);
            }
        }
        throw new IllegalStateException("This Spark does not convert filters as those before did");
    }
}
