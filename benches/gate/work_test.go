package work

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

var text = []byte(strings.Repeat("the quick brown fox jumps over the lazy dog 0123456789 ", 2000))

func BenchmarkHash(b *testing.B) {
	for n := 0; n < b.N; n++ { sha256.Sum256(text) }
}
func BenchmarkDeflate(b *testing.B) {
	for n := 0; n < b.N; n++ {
		var out bytes.Buffer
		w, _ := flate.NewWriter(&out, 6); w.Write(text); w.Close()
	}
}
func BenchmarkJson(b *testing.B) {
	for n := 0; n < b.N; n++ {
		made, _ := json.Marshal(map[string]string{"text": string(text[:10000])})
		var back map[string]string
		json.Unmarshal(made, &back)
	}
}
func BenchmarkRegexp(b *testing.B) {
	found := regexp.MustCompile("f[aeiou]x j([a-z]+)s")
	for n := 0; n < b.N; n++ { found.FindAllIndex(text, -1) }
}
func BenchmarkAllocate(b *testing.B) {
	for n := 0; n < b.N; n++ { made := map[int]string{}; for k := 0; k < 2000; k++ { made[k] = string(text[:k%50]) } }
}
