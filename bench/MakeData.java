import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.SplittableRandom;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;

/**
 * Writes one segment with Kafka's own record classes and prints what it holds as a line of JSON.
 *
 * Arguments: FILE SIZE MAGIC CODEC BATCH_SIZE VALUE_SIZE_MIN VALUE_SIZE_MAX HEADER_COUNT. Sizes are bytes. The file
 * ends with the last batch that keeps it within SIZE. A batch takes records as long as the builder has room in BATCH_SIZE, told the last batch's compression ratio, as a producer does it: with 1 each batch
 * holds one record. The same arguments give the same bytes.
 */
public final class MakeData {
    private static final long FIRST_TIMESTAMP = 1_760_000_000_000L;
    private static final String[] NAMES = {"user", "amount", "currency", "item", "count", "city", "status", "note", "channel"};
    private static final String[] WORDS = {"created", "paid", "shipped", "returned", "EUR", "USD", "web", "shop", "phone"};
    private static final String LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

    private final SplittableRandom random = new SplittableRandom(20_111);
    private final byte magic;
    private final Compression compression;
    private final int batchSize;
    private final int valueSizeMin;
    private final int valueSizeMax;
    private final int headerCount;
    private final ByteBuffer buffer = ByteBuffer.allocate(4 << 20);
    private float compressionRatio = 1;
    private long nextOffset;
    private long recordCount;
    private long batchCount;
    private int largestBatch;
    private SimpleRecord next;

    private MakeData(String[] arguments) {
        magic = Byte.parseByte(arguments[2]);
        compression = Compression.of(arguments[3]).build();
        batchSize = Integer.parseInt(arguments[4]);
        valueSizeMin = Integer.parseInt(arguments[5]);
        valueSizeMax = Integer.parseInt(arguments[6]);
        headerCount = Integer.parseInt(arguments[7]);
        next = draw();
    }

    public static void main(String[] arguments) throws IOException {
        MakeData maker = new MakeData(arguments);
        long size = maker.write(Path.of(arguments[0]), Long.parseLong(arguments[1]));
        System.out.printf(
            "{\"size\": %d, \"records\": %d, \"batches\": %d, \"largest_batch\": %d}%n",
            size, maker.recordCount, maker.batchCount, maker.largestBatch);
    }

    private long write(Path file, long size) throws IOException {
        Files.createDirectories(file.getParent());
        try (FileChannel channel = FileChannel.open(
                file, StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.TRUNCATE_EXISTING)) {
            MemoryRecords records = nextRecords();
            while (channel.position() + records.sizeInBytes() <= size) {
                count(records);
                ByteBuffer bytes = records.buffer();
                while (bytes.hasRemaining()) {
                    channel.write(bytes);
                }
                records = nextRecords();
            }
            return channel.size();
        }
    }

    private void count(MemoryRecords records) {
        recordCount = nextOffset;
        for (RecordBatch batch : records.batches()) {
            batchCount++;
            largestBatch = Math.max(largestBatch, batch.sizeInBytes());
        }
    }

    private MemoryRecords nextRecords() {
        buffer.clear();
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            buffer, magic, compression, TimestampType.CREATE_TIME, nextOffset, RecordBatch.NO_TIMESTAMP,
            RecordBatch.NO_PRODUCER_ID, RecordBatch.NO_PRODUCER_EPOCH, RecordBatch.NO_SEQUENCE, false, false,
            magic == RecordBatch.MAGIC_VALUE_V2 ? 7 : RecordBatch.NO_PARTITION_LEADER_EPOCH, batchSize);
        builder.setEstimatedCompressionRatio(compressionRatio);
        do {
            builder.append(next);
            nextOffset++;
            next = draw();
        } while (builder.hasRoomFor(next.timestamp(), next.key(), next.value(), next.headers()));
        MemoryRecords records = builder.build();
        compressionRatio = (float) builder.compressionRatio();
        return records;
    }

    private SimpleRecord draw() {
        return new SimpleRecord(FIRST_TIMESTAMP + nextOffset * 3 + random.nextInt(3), key(), value(), headers());
    }

    /** 8 to 16 bytes. */
    private byte[] key() {
        return ascii("user-" + random.nextInt(100, 1_000) + letters(random.nextInt(9)));
    }

    private Header[] headers() {
        Header[] headers = new Header[headerCount];
        for (int index = 0; index < headerCount; index++) {
            headers[index] = new RecordHeader("header-" + index, ascii(letters(4 + 4 * index)));
        }
        return headers;
    }

    /** Text like JSON of exactly the size drawn, some half of it letters and digits at random. */
    private byte[] value() {
        int size = random.nextInt(valueSizeMin, valueSizeMax + 1);
        StringBuilder text = new StringBuilder(size + 64).append("{\"id\":").append(random.nextInt(1_000_000_000));
        while (text.length() < size - 40) {
            text.append(",\"").append(NAMES[random.nextInt(NAMES.length)]).append("\":").append(field());
        }
        text.append(",\"trace\":\"").append(letters(Math.max(0, size - text.length() - 2)));
        return ascii(text.append("\"}").toString());
    }

    private String field() {
        switch (random.nextInt(3)) {
            case 0:
                return Integer.toString(random.nextInt(1_000_000));
            case 1:
                return '"' + WORDS[random.nextInt(WORDS.length)] + '"';
            default:
                return '"' + letters(14) + '"';
        }
    }

    private String letters(int count) {
        StringBuilder text = new StringBuilder(count);
        for (int index = 0; index < count; index++) {
            text.append(LETTERS.charAt(random.nextInt(LETTERS.length())));
        }
        return text.toString();
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }
}
