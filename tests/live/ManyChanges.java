import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ExpireDelegationTokenOptions;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RenewDelegationTokenOptions;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.token.delegation.DelegationToken;

/**
 * Changes a cluster's metadata by the Admin API: `ManyChanges PLAINTEXT SASL`, the addresses of brokers 1 to 3 each.
 *
 * Prints a line for each change that it asked for: when it asked and when that was done (milliseconds), the kind, what
 * happens, of what, by which name, and values after it as JSON (before it, if it takes something away).
 */
public class ManyChanges {
    private static Admin admin;
    private static final List<String[]> asked = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        admin = Admin.create(Map.of("bootstrap.servers", arguments[0]));
        topics();
        configs();
        acls();
        quotas();
        credentials();
        features();
        placements();
        tokens(arguments[1]);
        deletions();
        admin.close();
    }

    /** Takes a change that the next call asks for. */
    private static void ask(String kind, String action, String resource, String name, String values) {
        asked.add(new String[] {kind, action, resource, name, values});
    }

    /** Asks for the changes that were taken, and prints them. */
    private static void done(Callable<?> call) throws Exception {
        long before = System.currentTimeMillis();
        call.call();
        long after = System.currentTimeMillis();
        for (String[] each : asked) {
            System.out.println(before + "\t" + after + "\t" + String.join("\t", each));
        }
        asked.clear();
    }

    private static String object(Map<String, String> values) {
        List<String> members = new ArrayList<>();
        new TreeMap<>(values).forEach((name, value) -> members.add("\"" + name + "\":\"" + value + "\""));
        return "{" + String.join(",", members) + "}";
    }

    // --- topics ------------------------------------------------------------------------------------------------------

    private static void topics() throws Exception {
        for (int number = 0; number < 26; number++) {
            String name = "topic-" + number;
            Map<Integer, List<Integer>> replicas = new HashMap<>();
            int factor = number % 2 + 1;
            for (int partition = 0; partition <= number % 4; partition++) {
                replicas.put(partition, factor == 1 ? List.of(1) : List.of(1, 2));
            }
            Map<String, String> configs = new HashMap<>();
            if (number % 3 == 0) {
                configs.put("retention.ms", String.valueOf(100000 + number));
                configs.put("cleanup.policy", "compact");
            }
            String made = "\"partitions\":" + replicas.size() + ",\"replicationFactor\":" + factor;
            String own = configs.isEmpty() ? "" : ",\"configs\":" + object(configs);
            ask("topic", "created", name, "", "{" + made + own + "}");
            done(() -> admin.createTopics(List.of(new NewTopic(name, replicas).configs(configs))).all().get());
        }
        for (int number = 0; number < 5; number++) {
            String name = "topic-" + number;
            int count = number % 4 + 1;
            for (int partition = count; partition < count + 2; partition++) {
                ask("partition", "added", name + "-" + partition, "", "{}");
            }
            done(() -> admin.createPartitions(Map.of(name, NewPartitions.increaseTo(count + 2))).all().get());
        }
    }

    // --- settings ----------------------------------------------------------------------------------------------------

    private static void config(
        ConfigResource resource, String action, AlterConfigOp.OpType type, String name, String value, String result)
        throws Exception {
        if (action != null) {
            ask("config", action, resource.name(), name, "{\"value\":\"" + result + "\"}");
        }
        AlterConfigOp change = new AlterConfigOp(new ConfigEntry(name, value), type);
        done(() -> admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get());
    }

    private static void set(ConfigResource resource, String action, String name, String value) throws Exception {
        config(resource, action, AlterConfigOp.OpType.SET, name, value, value);
    }

    private static void delete(ConfigResource resource, String name, String value) throws Exception {
        config(resource, "removed", AlterConfigOp.OpType.DELETE, name, "", value);
    }

    private static void configs() throws Exception {
        for (int number = 0; number < 10; number++) {
            ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, "topic-" + number);
            set(topic, "set", "max.message.bytes", String.valueOf(50000 + number));
            set(topic, "changed", "max.message.bytes", String.valueOf(60000 + number));
            set(topic, null, "max.message.bytes", String.valueOf(60000 + number));
            if (number % 2 == 0) {
                delete(topic, "max.message.bytes", String.valueOf(60000 + number));
            }
        }
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, "topic-1");
        config(topic, "set", AlterConfigOp.OpType.APPEND, "cleanup.policy", "compact", "delete,compact");
        config(topic, "changed", AlterConfigOp.OpType.SUBTRACT, "cleanup.policy", "delete", "compact");
        for (String broker : List.of("", "1", "2")) {
            ConfigResource resource = new ConfigResource(ConfigResource.Type.BROKER, broker);
            set(resource, "set", "log.cleaner.threads", "2");
            set(resource, "changed", "log.cleaner.threads", "1");
            delete(resource, "log.cleaner.threads", "1");
            if (!broker.isEmpty()) {
                set(resource, "set", "listener.name.x.ssl.keystore.password", "secret-1");
                set(resource, "changed", "listener.name.x.ssl.keystore.password", "secret-2");
            }
        }
        for (int number = 0; number < 3; number++) {
            ConfigResource metrics = new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "metrics-" + number);
            set(metrics, "set", "interval.ms", "60000");
            ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, "group-" + number);
            set(group, "set", "consumer.heartbeat.interval.ms", "6000");
            delete(group, "consumer.heartbeat.interval.ms", "6000");
        }
        delete(new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "metrics-1"), "interval.ms", "60000");
    }

    // --- access ------------------------------------------------------------------------------------------------------

    private static AclBinding acl(int number) {
        ResourceType[] types = {ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID};
        PatternType pattern = number % 2 == 0 ? PatternType.LITERAL : PatternType.PREFIXED;
        AclPermissionType permission = number % 5 == 0 ? AclPermissionType.DENY : AclPermissionType.ALLOW;
        return new AclBinding(
            new ResourcePattern(types[number % 3], "resource-" + number, pattern),
            new AccessControlEntry("User:u" + number, "*", AclOperation.DESCRIBE, permission));
    }

    private static void askAcl(AclBinding acl, String action) {
        AccessControlEntry entry = acl.entry();
        ask("acl", action, acl.pattern().name(), "", object(Map.of(
            "principal", entry.principal(), "operation", entry.operation().name(), "host", entry.host(),
            "permission", entry.permissionType().name(), "patternType", acl.pattern().patternType().name())));
    }

    private static void acls() throws Exception {
        for (int number = 0; number < 32; number++) {
            AclBinding acl = acl(number);
            askAcl(acl, "added");
            done(() -> admin.createAcls(List.of(acl)).all().get());
        }
        for (int number = 0; number < 10; number++) {
            AclBinding acl = acl(number);
            askAcl(acl, "removed");
            done(() -> admin.deleteAcls(List.of(acl.toFilter())).all().get());
        }
    }

    private static void quotas() throws Exception {
        for (int number = 0; number < 8; number++) {
            String name = number == 0 ? null : "u" + number;
            Map<String, String> parts = new HashMap<>();
            parts.put(number % 2 == 0 ? ClientQuotaEntity.USER : ClientQuotaEntity.CLIENT_ID, name);
            String shown = (number % 2 == 0 ? "user " : "client-id ") + (name == null ? "<default>" : name);
            quota(parts, shown, "set", "producer_byte_rate", 1000.0 + number);
            quota(parts, shown, "changed", "producer_byte_rate", 2000.0 + number);
            if (number < 4) {
                quota(parts, shown, "removed", "producer_byte_rate", 2000.0 + number);
            }
        }
        quota(Map.of(ClientQuotaEntity.IP, "10.0.0.1"), "ip 10.0.0.1", "set", "connection_creation_rate", 10.0);
    }

    private static void quota(Map<String, String> parts, String shown, String action, String name, double value)
        throws Exception {
        ask("quota", action, shown, name, "{\"limit\":" + value + "}");
        Double wanted = action.equals("removed") ? null : Double.valueOf(value);
        ClientQuotaAlteration change = new ClientQuotaAlteration(
            new ClientQuotaEntity(parts), List.of(new ClientQuotaAlteration.Op(name, wanted)));
        done(() -> admin.alterClientQuotas(List.of(change)).all().get());
    }

    private static void credentials() throws Exception {
        for (int number = 0; number < 8; number++) {
            String user = "user-" + number;
            int iterations = 4096 + number;
            ScramMechanism mechanism = number % 2 == 0 ? ScramMechanism.SCRAM_SHA_256 : ScramMechanism.SCRAM_SHA_512;
            for (String action : number < 3 ? List.of("set", "changed") : List.of("set")) {
                ask("scram", action, user, "", "{\"iterations\":" + iterations + "}");
                UserScramCredentialUpsertion wanted = new UserScramCredentialUpsertion(
                    user, new ScramCredentialInfo(mechanism, iterations), "secret-" + action);
                done(() -> admin.alterUserScramCredentials(List.of(wanted)).all().get());
            }
            if (number > 4) {
                ask("scram", "removed", user, "", "{\"iterations\":" + iterations + "}");
                done(() -> admin.alterUserScramCredentials(
                    List.of(new UserScramCredentialDeletion(user, mechanism))).all().get());
            }
        }
    }

    // --- features, placements, tokens --------------------------------------------------------------------------------

    private static void features() throws Exception {
        Map<String, Short> levels = new HashMap<>();
        admin.describeFeatures().featureMetadata().get().finalizedFeatures()
            .forEach((name, range) -> levels.put(name, range.maxVersionLevel()));
        short now = levels.get("transaction.version");
        for (short level : new short[] {(short) (now - 1), now}) {
            ask("feature", "changed", "transaction.version", "transaction.version", "{\"level\":" + level + "}");
            FeatureUpdate.UpgradeType type =
                level < now ? FeatureUpdate.UpgradeType.SAFE_DOWNGRADE : FeatureUpdate.UpgradeType.UPGRADE;
            done(() -> admin.updateFeatures(
                Map.of("transaction.version", new FeatureUpdate(level, type)), new UpdateFeaturesOptions()).all().get());
        }
    }

    private static void placements() throws Exception {
        for (int number = 5; number < 19; number += 2) {
            TopicPartition partition = new TopicPartition("topic-" + number, 0);
            reassign(partition, List.of(2, 1), "{\"replicas\":[2,1]}");
            ask("partition", "changed", partition.toString(), "", "{\"leader\":2}");
            done(() -> admin.electLeaders(ElectionType.PREFERRED, Set.of(partition)).all().get());
        }
        for (int number = 6; number < 16; number += 2) {
            TopicPartition partition = new TopicPartition("topic-" + number, 0);
            reassign(partition, List.of(2), "{\"replicas\":[2,1],\"addingReplicas\":[2],\"removingReplicas\":[1]}");
            while (!admin.listPartitionReassignments().reassignments().get().isEmpty()) {
                Thread.sleep(50);
            }
        }
    }

    private static void reassign(TopicPartition partition, List<Integer> replicas, String values) throws Exception {
        ask("partition", "changed", partition.toString(), "", values);
        done(() -> admin.alterPartitionReassignments(
            Map.of(partition, Optional.of(new NewPartitionReassignment(replicas)))).all().get());
    }

    private static void tokens(String address) throws Exception {
        Properties login = new Properties();
        login.put("bootstrap.servers", address);
        login.put("security.protocol", "SASL_PLAINTEXT");
        login.put("sasl.mechanism", "PLAIN");
        login.put("sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required"
            + " username=\"alice\" password=\"alice\";");
        try (Admin alice = Admin.create(login)) {
            for (int number = 0; number < 3; number++) {
                long before = System.currentTimeMillis();
                DelegationToken token = alice.createDelegationToken().delegationToken().get();
                ask("token", "created", token.tokenInfo().tokenId(), "", "{\"owner\":\"User:alice\"}");
                print(before);
                Thread.sleep(1000); // until the brokers know it
                if (number > 0) {
                    ask("token", "changed", token.tokenInfo().tokenId(), "", "{}");
                    done(() -> alice.renewDelegationToken(
                        token.hmac(), new RenewDelegationTokenOptions().renewTimePeriodMs(600000)).expiryTimestamp().get());
                }
                if (number > 1) {
                    ask("token", "removed", token.tokenInfo().tokenId(), "", "{\"owner\":\"User:alice\"}");
                    done(() -> alice.expireDelegationToken(
                        token.hmac(), new ExpireDelegationTokenOptions().expiryTimePeriodMs(-1)).expiryTimestamp().get());
                }
            }
        }
    }

    /** Prints what a call asked for whose answer had to be there first. */
    private static void print(long before) {
        long after = System.currentTimeMillis();
        asked.forEach(each -> System.out.println(before + "\t" + after + "\t" + String.join("\t", each)));
        asked.clear();
    }

    private static void deletions() throws Exception {
        for (int number = 10; number < 24; number++) {
            String name = "topic-" + number;
            ask("topic", "deleted", name, "", "{\"partitions\":" + (number % 4 + 1) + "}");
            done(() -> admin.deleteTopics(List.of(name)).all().get());
        }
        ask("broker", "unregistered", "3", "", "{}");
        done(() -> admin.unregisterBroker(3).all().get());
    }
}
