import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;

/**
 * Builds batches of records with Kafka's MemoryRecordsBuilder and prints records per CPU second, of all threads.
 *
 * Arguments: CODEC COUNT PER_BATCH VALUE_SIZE. As many records as COUNT are built before, unmeasured, so that the code
 * is compiled.
 */
public final class BuildRecords {
    private static final long FIRST_TIMESTAMP = 1_760_000_000_000L;

    public static void main(String[] arguments) {
        Compression compression = Compression.of(arguments[0]).build();
        int count = Integer.parseInt(arguments[1]);
        int perBatch = Integer.parseInt(arguments[2]);
        byte[][] values = new byte[1000][Integer.parseInt(arguments[3])];
        byte[][] keys = new byte[1000][];
        for (int i = 0; i < values.length; i++) {
            Arrays.fill(values[i], (byte) ('a' + i % 26));
            keys[i] = ("key-" + i).getBytes();
        }
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        ByteBuffer buffer = ByteBuffer.allocate(1 << 20);
        build(buffer, compression, count, perBatch, keys, values);
        long before = system.getProcessCpuTime();
        build(buffer, compression, count, perBatch, keys, values);
        System.out.println(count * 1e9 / (system.getProcessCpuTime() - before));
    }

    private static void build(
            ByteBuffer buffer, Compression compression, int count, int perBatch, byte[][] keys, byte[][] values) {
        for (int first = 0; first < count; first += perBatch) {
            buffer.clear();
            try (var builder = MemoryRecords.builder(
                    buffer, RecordBatch.MAGIC_VALUE_V2, compression, TimestampType.CREATE_TIME, first)) {
                for (int i = first; i < first + perBatch; i++) {
                    builder.append(FIRST_TIMESTAMP + i, keys[i % 1000], values[i % 1000], new Header[0]);
                }
                builder.build();
            }
        }
    }
}
