package transactionmetastore.spark.internals;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.fs.MultipartUploader;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.UploadHandle;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.execution.datasources.orc.OrcFilters;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;

/**
 * All reflection: calls of public methods that differ between versions, or that some versions lack. Each method names its
 * reason. Nothing private is opened.
 */
public final class SparkInternals {
    private SparkInternals() {}

    /** Returns a setting of this process's Spark; "" if it is not set. */
    public static String setting(String name) {
        return SparkEnv.get() == null ? "" : SparkEnv.get().conf().get(name, "");
    }

    /** Converts filters for ORC. Since version 4.3 Spark's method has a third, optional argument. */
    public static scala.Option<?> orcFilter(StructType row, List<Filter> filters) {
        for (Method method : OrcFilters.class.getMethods()) {
            if (!method.getName().equals("createFilter")) continue;
            Object[] values = new Object[method.getParameterCount()];
            values[0] = row;
            values[1] = PythonUtils.toSeq(filters);
            if (values.length > 2) values[2] = scala.Option.empty();
            try {
                return (scala.Option<?>) method.invoke(null, values);
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error);
            }
        }
        throw new IllegalStateException("This Spark does not convert filters as those before did");
    }

    /** Sends a part of an upload. Since version 3.5 Hadoop's method takes a flag for the last part. */
    public static CompletableFuture<?> putPart(
            MultipartUploader uploader, UploadHandle handle, int part, boolean isLast, Path target, InputStream in,
            long length) throws IOException {
        Object[] values = PUT_PART.getParameterCount() == 6
            ? new Object[] {handle, part, isLast, target, in, length}
            : new Object[] {handle, part, target, in, length};
        try {
            return (CompletableFuture<?>) PUT_PART.invoke(uploader, values);
        } catch (InvocationTargetException error) {
            throw new IOException(error.getCause());
        } catch (IllegalAccessException error) {
            throw new IOException(error);
        }
    }

    private static final Method PUT_PART = putPart();

    private static Method putPart() {
        for (Method method : MultipartUploader.class.getMethods()) {
            if (method.getName().equals("putPart")) return method;
        }
        throw new IllegalStateException("This Hadoop uploads no parts");
    }
}
