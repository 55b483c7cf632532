// Reads all partitions to their ends with franz-go, and prints a line of JSON for each record.
// Argument: bootstrap server. Partitions that the client gives up are printed as errors.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type line struct {
	Partition string      `json:"partition"`
	Offset    int64       `json:"offset"`
	Timestamp int64       `json:"timestamp"`
	Key       []byte      `json:"key"`
	Value     []byte      `json:"value"`
	Headers   [][2][]byte `json:"headers"`
	Error     string      `json:"error,omitempty"`
}

const (
	unknownTime = -1
	earliest    = -2
	latest      = -1
	// After so long without a record there are none: the last offsets may be of records that a cleaner took.
	patience = 2 * time.Second
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func milliseconds(at time.Time) int64 {
	if at.IsZero() {
		return unknownTime
	}
	return at.UnixMilli()
}

// Offsets of all partitions at a time. kadm's own lists leave internal topics out.
func offsets(ctx context.Context, client *kgo.Client, topics kadm.TopicDetails, time int64) map[string]int64 {
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID = -1
	for _, topic := range topics {
		asked := kmsg.NewListOffsetsRequestTopic()
		asked.Topic = topic.Topic
		for number := range topic.Partitions {
			partition := kmsg.NewListOffsetsRequestTopicPartition()
			partition.Partition, partition.Timestamp = number, time
			asked.Partitions = append(asked.Partitions, partition)
		}
		request.Topics = append(request.Topics, asked)
	}
	response, err := request.RequestWith(ctx, client)
	must(err)
	found := map[string]int64{}
	for _, topic := range response.Topics {
		for _, partition := range topic.Partitions {
			found[fmt.Sprintf("%s-%d", topic.Topic, partition.Partition)] = partition.Offset
		}
	}
	return found
}

func main() {
	ctx := context.Background()
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.FetchMaxWait(200e6), kgo.KeepControlRecords())
	must(err)
	defer client.Close()
	topics, err := kadm.NewClient(client).ListTopicsWithInternal(ctx)
	must(err)
	starts, ends := offsets(ctx, client, topics, earliest), offsets(ctx, client, topics, latest)

	wanted := map[string]map[int32]kgo.Offset{}
	left := map[string]int64{}
	topics.EachPartition(func(partition kadm.PartitionDetail) {
		name := fmt.Sprintf("%s-%d", partition.Topic, partition.Partition)
		if ends[name] > starts[name] {
			if wanted[partition.Topic] == nil {
				wanted[partition.Topic] = map[int32]kgo.Offset{}
			}
			wanted[partition.Topic][partition.Partition] = kgo.NewOffset().At(starts[name])
			left[name] = ends[name]
		}
	})
	client.AddConsumePartitions(wanted)

	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	printed := json.NewEncoder(out)
	for len(left) > 0 {
		waiting, cancel := context.WithTimeout(ctx, patience)
		fetches := client.PollFetches(waiting)
		cancel()
		if waiting.Err() == context.DeadlineExceeded {
			return
		}
		fetches.EachError(func(topic string, partition int32, err error) {
			name := fmt.Sprintf("%s-%d", topic, partition)
			if _, ok := left[name]; ok {
				must(printed.Encode(line{Partition: name, Error: err.Error()}))
				delete(left, name)
			}
		})
		fetches.EachRecord(func(record *kgo.Record) {
			name := fmt.Sprintf("%s-%d", record.Topic, record.Partition)
			if !record.Attrs.IsControl() {
				headers := [][2][]byte{}
				for _, each := range record.Headers {
					headers = append(headers, [2][]byte{[]byte(each.Key), each.Value})
				}
				must(printed.Encode(line{name, record.Offset, milliseconds(record.Timestamp), record.Key, record.Value, headers, ""}))
			}
			if end, ok := left[name]; ok && record.Offset+1 >= end {
				delete(left, name)
			}
		})
	}
}
