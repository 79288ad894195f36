package transactionmetastore.spark.files;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument;
import org.apache.hadoop.mapred.JobConf;
import org.apache.orc.OrcConf;
import org.apache.orc.mapred.OrcInputFormat;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat;
import org.apache.spark.sql.execution.datasources.orc.OrcUtils;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.util.SerializableConfiguration;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction0;
import transactionmetastore.spark.internals.SparkInternals;

/**
 * Spark's ORC source for ACID files. It shows the columns of "row" as if they were the file's own.
 *
 * To Spark a file has the five fields of an event, whether its row is deleted, and then the table's columns. The schema
 * names the first six; a scan that needs none of them has the columns alone, like a scan of a flat file. Columns that a
 * query does not need are not read. Conditions on the table's columns go to ORC, which looks for them inside "row" of an
 * ACID file; conditions on the others do not: ORC would take a user's column of the same name. It exists in the driver only;
 * AcidOrcReader runs in the tasks.
 */
public class AcidOrcFormat extends OrcFileFormat {
    private static final long serialVersionUID = 1L;

    private long[][] deleted;
    private int shift, small, inRow;

    /**
     * Returns a scan over files that have been listed already. "files": an array of FileStatus in Hadoop's format. "root":
     * a path that only these files have. "event": the names and types of the first six fields, or "" for a scan of the
     * table's columns alone. "deleted": the arrays of DeletedRows in metastore/acid_tables/deleted.py, each after its
     * length; or null. "small": the largest size of a file that is read whole. "where": a condition, or "". "before" and
     * "after": expressions around the table's columns, as JSON lists.
     *
     * The scan is a single call and a single plan, which Spark analyses once: PySpark calls the JVM several times for each
     * Column object, and Spark analyses each step of a frame separately.
     */
    public Dataset<?> scan(
            final SparkSession spark, final String root, final byte[] files, final String event, final String columns,
            final byte[] deleted, final int shift, final int small, final String where, final String before,
            final String after) {
        return (Dataset<?>) spark.withActive(new AbstractFunction0<Object>() {
            @Override
            public Object apply() {
                AcidOrcFormat format = new AcidOrcFormat();
                format.deleted = deleted == null ? null : arrays(ByteBuffer.wrap(deleted));
                format.shift = shift;
                format.small = small;
                format.inRow = event.isEmpty() ? 0 : AcidOrcReader.IN_ROW;
                String separator = event.isEmpty() || columns.isEmpty() ? "" : ", ";
                StructType schema = StructType.fromDDL(event + separator + columns);
                LogicalPlan plan = null;
                try {
                    HadoopFsRelation relation = ListedFiles.relation(spark, root, files, schema, format, new HashMap<String, String>());
                    plan = LogicalRelation$.MODULE$.apply(relation, false);
                    if (!event.isEmpty()) plan = shown(spark, plan, where, before, after);
                } catch (Exception error) {
                    Platform.throwException(error);
                }
                return Dataset$.MODULE$.ofRows((org.apache.spark.sql.classic.SparkSession) spark, plan);
            }
        });
    }

    private static LogicalPlan shown(SparkSession spark, LogicalPlan events, String where, String before, String after)
            throws ParseException {
        ParserInterface parser = ((org.apache.spark.sql.classic.SparkSession) spark).sessionState().sqlParser();
        List<NamedExpression> shown = new ArrayList<>();
        addParsed(parser, before, shown);
        for (int place = AcidOrcReader.IN_ROW; place < events.output().size(); ++place) {
            Object column = events.output().apply(place);
            shown.add((NamedExpression) column);
        }
        addParsed(parser, after, shown);
        LogicalPlan rows = where.isEmpty() ? events
            : new org.apache.spark.sql.catalyst.plans.logical.Filter(parser.parseExpression(where), events);
        return new Project(PythonUtils.toSeq(shown), rows);
    }

    private static void addParsed(ParserInterface parser, String texts, List<NamedExpression> parsed)
            throws ParseException {
        for (Object text : Messages.list(texts)) parsed.add((NamedExpression) parser.parseExpression((String) text));
    }

    private static long[][] arrays(ByteBuffer bytes) {
        long[][] arrays = new long[5][];
        for (int array = 0; array < arrays.length; ++array) {
            arrays[array] = new long[(int) bytes.getLong()];
            bytes.asLongBuffer().get(arrays[array]);
            bytes.position(bytes.position() + 8 * arrays[array].length);
        }
        return arrays;
    }

    @Override
    @SuppressWarnings("unchecked")  // Spark's signature has Object here
    public scala.Function1<PartitionedFile, Iterator<InternalRow>> buildReaderWithPartitionValues(
            SparkSession spark, StructType data, StructType partition, StructType required,
            scala.collection.immutable.Seq<Filter> filters, scala.collection.immutable.Map<String, String> options,
            Configuration settings) {
        int[] places = new int[required.length()];
        boolean[] included = new boolean[EventColumns.ROW + 1];
        List<StructField> fields = new ArrayList<>();
        boolean marks = false;
        for (int column = 0; column < places.length; ++column) {
            int place = data.fieldIndex(required.fields()[column].name()) + AcidOrcReader.IN_ROW - inRow;
            if (place >= AcidOrcReader.IN_ROW) {
                places[column] = AcidOrcReader.IN_ROW + fields.size();
                fields.add(required.fields()[column]);
                included[EventColumns.ROW] = true;
            } else {
                places[column] = place;
                marks |= place == AcidOrcReader.DELETED;
                if (place != AcidOrcReader.DELETED) included[place] = true;
            }
        }
        marks &= deleted != null;
        if (marks) included[EventColumns.ORIGINAL] = included[EventColumns.BUCKET] = included[EventColumns.ROW_ID] = true;
        StructType events = EventColumns.around(DataTypes.createStructType(fields));
        String schema = OrcUtils.getOrcSchemaString(events);
        OrcConf.MAPRED_INPUT_SCHEMA.setString(settings, schema);
        OrcConf.INCLUDE_COLUMNS.setString(settings, numbers(included));
        OrcConf.IS_SCHEMA_EVOLUTION_CASE_SENSITIVE.setBoolean(settings, SQLConf.get().caseSensitiveAnalysis());
        pushDown(data, filters, settings);
        boolean batches = options.get("returning_batch").contains("true");
        // One broadcast for all: Spark reserves 4 MB for each object that is broadcast.
        Object[] sent = {new SerializableConfiguration(new JobConf(settings)), marks ? deleted : null};
        Object reader = new AcidOrcReader(
            JavaSparkContext.fromSparkContext(spark.sparkContext()).broadcast(sent), events, schema, places,
            batches ? null : required, SQLConf.get().orcVectorizedReaderBatchSize(), shift, small);
        return (scala.Function1<PartitionedFile, Iterator<InternalRow>>) reader;
    }

    private static String numbers(boolean[] included) {
        StringBuilder places = new StringBuilder();
        for (int place = 0; place < included.length; ++place) {
            if (included[place]) places.append(places.length() == 0 ? "" : ",").append(place);
        }
        return places.toString();
    }

    private void pushDown(StructType data, scala.collection.immutable.Seq<Filter> filters, Configuration settings) {
        StructField[] all = data.fields();
        StructType row = DataTypes.createStructType(Arrays.asList(all).subList(inRow, all.length));
        List<Filter> ofRow = new ArrayList<>();
        for (Filter filter : CollectionConverters.asJava(filters)) {
            Filter shown = isOfRow(filter, data) ? OrcConditions.shown(filter) : null;
            if (shown != null) ofRow.add(shown);
        }
        scala.Option<?> argument = SparkInternals.orcFilter(row, ofRow);
        if (SQLConf.get().orcFilterPushDown() && argument.isDefined()) {
            OrcInputFormat.setSearchArgument(settings, (SearchArgument) argument.get(), row.fieldNames());
        }
    }

    private boolean isOfRow(Filter filter, StructType data) {
        for (String name : filter.references()) {
            for (int field = 0; field < inRow; ++field) {
                if (name.equals(data.fields()[field].name())) return false;
            }
        }
        return filter.references().length > 0;
    }
}
