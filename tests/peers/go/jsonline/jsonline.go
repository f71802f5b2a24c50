// Package jsonline is how these programs talk to a test: one JSON document a line, in on stdin, out on stdout.
// Everything else they have to say goes to stderr.
package jsonline

import (
	"bufio"
	"encoding/json"
	"io"
	"log"
	"os"
	"sync"
)

var (
	lock   sync.Mutex
	output = bufio.NewWriter(os.Stdout)
)

// Write prints one document; lines of concurrent writers never mix.
func Write(document any) {
	line, err := json.Marshal(document)
	if err != nil {
		log.Fatalf("cannot print %T as JSON: %v", document, err)
	}
	lock.Lock()
	defer lock.Unlock()
	_, _ = output.Write(append(line, '\n'))
	// A test waits for this very line, so it must not linger in the buffer.
	if err := output.Flush(); err != nil {
		log.Fatalf("the reader of our output is gone: %v", err)
	}
}

// Read hands every document on stdin to handle, in order, and returns at the end of the input.
func Read[T any](handle func(T)) {
	decoder := json.NewDecoder(os.Stdin)
	for {
		var document T
		err := decoder.Decode(&document)
		if err == io.EOF {
			return
		}
		if err != nil {
			log.Fatalf("cannot read a command: %v", err)
		}
		handle(document)
	}
}
