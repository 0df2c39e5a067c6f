package stompdiff

import (
	"fmt"
	"strings"

	"github.com/queued-mq/queued/internal/exchange"
)

const (
	knownFile = "rabbitmq.txt"
	pageFile  = "../../docs/stomp-differences.md"
)

// Played tells how much there is to play.
func Played(table []*exchange.Exchange) string {
	plays := 0
	for _, x := range table {
		plays += len(x.Versions)
	}
	return fmt.Sprintf("%d exchanges, %d plays in all versions", len(table), plays)
}

// Page is docs/stomp-differences.md.
func Page(played string, all []*Known) string {
	differ := map[string]bool{}
	for _, k := range all {
		for _, w := range k.Differences {
			for _, v := range w.Versions {
				differ[w.Exchange+v] = true
			}
		}
	}
	var page strings.Builder
	fmt.Fprintf(&page, pageHead, played, len(differ))
	for _, k := range all {
		fmt.Fprintf(&page, "\n## %s\n", k.Reason)
		if k.Sometimes {
			page.WriteString("\nThis is a race: at times it answers as ours does.\n")
		}
		page.WriteString("\n| exchange | versions | queued | RabbitMQ |\n|---|---|---|---|\n")
		for _, w := range k.Differences {
			fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", cell(w.Exchange), strings.Join(w.Versions, " "), cell(w.Want), cell(w.Got))
		}
	}
	return page.String()
}

const pageHead = `# Where STOMP differs from RabbitMQ

Written by ` + "`make stomp-differential`" + `, not by hand. What is compared: the table of
[exchanges](../stomp/testdata/exchanges) between a client and a server, as far as it needs nothing but a socket and shows a rule of
the protocol, not one of ours. The same table runs in every test against our server, in process and over sockets, so the column
` + "`queued`" + ` is what it does. RabbitMQ is 3.10.8 of Debian 12 with its STOMP plugin; its guest signs in where nothing is said, every
queue is ` + "`/queue/NAME`" + `, and headers that only we have are not asked for. A play ends at the first answer of another kind.

Played were %s. RabbitMQ answers %d of the plays otherwise than the table says, the
races among them. The headings say why.
`

// cell is text in a table of Markdown.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`, "<", `\<`, `\`, `\\`, "`", "\\`").Replace(text)
}
