// An HTTP client in Go. usage: fetch METHOD URL [BODY]
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	body := ""
	if len(os.Args) > 3 {
		body = os.Args[3]
	}
	begun := time.Now()
	after := func() string { return fmt.Sprintf("after %.1f ms", float64(time.Since(begun).Microseconds())/1000) }
	request, err := http.NewRequest(os.Args[1], os.Args[2], strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	client := http.Client{Timeout: 15 * time.Second}
	answer, err := client.Do(request)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		fmt.Fprintln(os.Stderr, after())
		os.Exit(1)
	}
	io.Copy(os.Stdout, answer.Body)
	if answer.StatusCode >= 400 {
		fmt.Fprintln(os.Stderr, "status", answer.StatusCode, after())
		os.Exit(22)
	}
}
