// Package test, for Maestro's integration suite: its cases compare the metrics of their own process with what they
// expect of the server. The server is another process here, so its metrics are read instead: names, types, labels and
// values. The texts that explain a metric are those of Go's own, because they are for people.
package test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"sort"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

var described = regexp.MustCompile(`fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*")`)

func init() {
	url := os.Getenv("METRICS_URL")
	prometheus.DefaultGatherer = prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return scrape(url) })
}

func scrape(url string) ([]*dto.MetricFamily, error) {
	answer, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, answer.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	byName, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		return nil, err
	}
	texts := explanations()
	families := make([]*dto.MetricFamily, 0, len(byName))
	for name, family := range byName {
		if text, found := texts[name]; found {
			family.Help = &text
		}
		sort.Slice(family.Metric, func(i, j int) bool { return family.Metric[i].String() < family.Metric[j].String() })
		families = append(families, family)
	}
	sort.Slice(families, func(i, j int) bool { return families[i].GetName() < families[j].GetName() })
	return families, nil
}

// explanations returns the help text of every metric that Go's code has registered in this process.
func explanations() map[string]string {
	found := make(chan *prometheus.Desc, 1000)
	go func() {
		prometheus.DefaultRegisterer.(*prometheus.Registry).Describe(found)
		close(found)
	}()
	texts := map[string]string{}
	for description := range found {
		if parts := described.FindStringSubmatch(description.String()); parts != nil {
			name, _ := strconv.Unquote(parts[1])
			texts[name], _ = strconv.Unquote(parts[2])
		}
	}
	return texts
}
