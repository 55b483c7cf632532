import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.WritableByteChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;

/**
 * Writes the segment of the documentation's sample, with the record classes of the release on the class path.
 *
 * Argument: the directory for the .log, .index and .timeindex. The documentation fixes the first five times, the texts and
 * the eleven index entries; the sizes of the batches between them were chosen to lead to just these positions.
 */
public final class WriteSample {
    private static final long BASE_OFFSET = 203_000;
    private static final long START_MS = 1_581_597_478_310L;
    private static final int RECORDS_PER_MS = 20;
    private static final int BATCH_PAUSE_MS = 2;
    private static final int RUN_PAUSE_MS = 5002;
    // From a delta of 64 on, a time takes a second byte: so a batch reaches the size that the positions ask for.
    private static final int LONG_DELTA_MS = 64;
    private static final int NEVER = Integer.MAX_VALUE;

    /** One batch. startsRun: the producer was started again. longDeltaFrom: the first record whose time is late. */
    private record Batch(int count, boolean startsRun, int longDeltaFrom, boolean hasIndexEntry) {}

    private final ByteArrayOutputStream log = new ByteArrayOutputStream();
    private final ByteArrayOutputStream index = new ByteArrayOutputStream();
    private final ByteArrayOutputStream timeIndex = new ByteArrayOutputStream();
    private long offset = BASE_OFFSET;
    private long lastMs = START_MS;
    private int number;

    public static void main(String[] args) throws IOException {
        WriteSample sample = new WriteSample();
        for (Batch batch : batches()) {
            sample.append(batch);
        }
        sample.appendTime();
        sample.write(Path.of(args[0]));
    }

    private static List<Batch> batches() {
        List<Batch> batches = new ArrayList<>();
        batches.add(new Batch(100, true, NEVER, false));
        batches.add(new Batch(100, true, NEVER, false));
        batches.add(new Batch(92, true, 75, false));
        batches.add(new Batch(8, false, NEVER, true));
        batches.add(new Batch(100, true, NEVER, false));
        batches.add(new Batch(85, true, NEVER, false));
        for (int i = 0; i < 12; i++) {
            batches.add(new Batch(50, false, NEVER, false));
        }
        batches.add(new Batch(54, false, NEVER, false));
        batches.add(new Batch(519, false, 502, true));
        for (int i = 0; i < 9; i++) {
            batches.add(new Batch(512, false, NEVER, true));
        }
        batches.add(new Batch(34, false, NEVER, false));
        return batches;
    }

    private void append(Batch batch) throws IOException {
        int position = log.size();
        long firstMs = firstTime(batch);
        number = batch.startsRun ? 0 : number;
        MemoryRecordsBuilder builder = MemoryRecords.builder(
                ByteBuffer.allocate(64 * 1024), RecordBatch.CURRENT_MAGIC_VALUE, CompressionType.NONE,
                TimestampType.CREATE_TIME, offset, RecordBatch.NO_TIMESTAMP, 0);
        for (int i = 0; i < batch.count; i++) {
            lastMs = firstMs + delta(batch, i);
            byte[] value = ("local test -------- " + number++).getBytes(StandardCharsets.UTF_8);
            builder.appendWithOffset(offset++, lastMs, (byte[]) null, value);
        }
        WritableByteChannel channel = Channels.newChannel(log);
        channel.write(builder.build().buffer().duplicate());
        if (batch.hasIndexEntry) {
            DataOutputStream entry = new DataOutputStream(index);
            entry.writeInt((int) (offset - 1 - BASE_OFFSET));
            entry.writeInt(position);
            appendTime();
        }
    }

    private long firstTime(Batch batch) {
        if (offset == BASE_OFFSET) {
            return START_MS;
        }
        return lastMs + (batch.startsRun ? RUN_PAUSE_MS : BATCH_PAUSE_MS);
    }

    private long delta(Batch batch, int record) {
        if (record >= batch.longDeltaFrom) {
            return LONG_DELTA_MS;
        }
        int delta = record / RECORDS_PER_MS;
        if (offset < BASE_OFFSET + batch.count) {
            // The documentation's first times: 310, 320, 321, 321, 321.
            delta += record == 0 ? 0 : record == 1 ? 10 : 11;
        }
        return delta;
    }

    /** A time index entry of the last record; the log's last one is written when the log is closed. */
    private void appendTime() throws IOException {
        DataOutputStream entry = new DataOutputStream(timeIndex);
        entry.writeLong(lastMs);
        entry.writeInt((int) (offset - 1 - BASE_OFFSET));
    }

    private void write(Path directory) throws IOException {
        String name = String.format("%020d", BASE_OFFSET);
        Files.createDirectories(directory);
        Files.write(directory.resolve(name + ".log"), log.toByteArray());
        Files.write(directory.resolve(name + ".index"), index.toByteArray());
        Files.write(directory.resolve(name + ".timeindex"), timeIndex.toByteArray());
    }
}
