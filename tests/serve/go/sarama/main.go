// Reads all partitions to their ends with sarama, and prints a line of JSON for each record.
// Argument: bootstrap server. Partitions that the client gives up are printed as errors.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/IBM/sarama"
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
	// After so long without a record there are none: the client tells no control records, which often are the last ones.
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

func main() {
	settings := sarama.NewConfig()
	settings.Version = sarama.V2_8_0_0
	settings.Consumer.Return.Errors = true
	settings.Consumer.MaxWaitTime = 200 * time.Millisecond
	client, err := sarama.NewClient([]string{os.Args[1]}, settings)
	must(err)
	defer client.Close()
	consumer, err := sarama.NewConsumerFromClient(client)
	must(err)
	out := &lines{writer: bufio.NewWriter(os.Stdout)}
	defer out.writer.Flush()
	var readers sync.WaitGroup
	topics, err := client.Topics()
	must(err)
	for _, topic := range topics {
		partitions, err := client.Partitions(topic)
		must(err)
		for _, partition := range partitions {
			start, err := client.GetOffset(topic, partition, sarama.OffsetOldest)
			must(err)
			end, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
			must(err)
			if start < end {
				readers.Add(1)
				go func() {
					defer readers.Done()
					read(consumer, topic, partition, start, end, out)
				}()
			}
		}
	}
	readers.Wait()
}

type lines struct {
	lock   sync.Mutex
	writer *bufio.Writer
}

func (to *lines) print(one line) {
	to.lock.Lock()
	defer to.lock.Unlock()
	must(json.NewEncoder(to.writer).Encode(one))
}

func read(consumer sarama.Consumer, topic string, number int32, start, end int64, out *lines) {
	name := fmt.Sprintf("%s-%d", topic, number)
	partition, err := consumer.ConsumePartition(topic, number, start)
	must(err)
	defer partition.AsyncClose()
	for silent := time.NewTimer(patience); ; silent.Reset(patience) {
		select {
		case record := <-partition.Messages():
			headers := [][2][]byte{}
			for _, each := range record.Headers {
				headers = append(headers, [2][]byte{each.Key, each.Value})
			}
			out.print(line{name, record.Offset, milliseconds(record.Timestamp), record.Key, record.Value, headers, ""})
			if record.Offset+1 >= end {
				return
			}
		case problem := <-partition.Errors():
			out.print(line{Partition: name, Error: problem.Error()})
			return
		case <-silent.C:
			return
		}
	}
}
