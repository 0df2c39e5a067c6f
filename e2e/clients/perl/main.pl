# Checks queued with Net::Stomp, a STOMP client for Perl.
use strict;
use warnings;
use utf8;
use Encode qw(encode_utf8);
use HTTP::Tiny;
use JSON::PP;
use Net::Stomp::Frame;

require './hello.pl';

my $letters = 'letters'; # the queue of all checks; each leaves it empty
my $wait = 30;           # seconds that anything may take
my $octets = join '', map { chr } 0 .. 255;
my $text = encode_utf8("a\nb: \\ é 😀 שלום");

$| = 1;

sub ok { my ($topic, $what) = @_; print "ok\t$topic\t", encode_utf8($what), "\n" }
sub none { my ($topic, $what) = @_; print "none\t$topic\t$what\n" }

sub same {
    my ($got, $want, $what) = @_;
    $got = '(undef)' unless defined $got;
    die "$what: got $got, want $want" unless $got eq $want;
}

sub get {
    my $answer = HTTP::Tiny->new(timeout => $wait)->get(shift);
    die "$answer->{status} $answer->{content}" unless $answer->{success};
    return $answer->{content};
}

sub stats {
    my $queue = decode_json(get("$ENV{QUEUED}/20210201/queues/$letters/stats"))->{queue};
    return "$queue->{visibleMessages} $queue->{inFlightMessages}";
}

# So many messages must be there.
sub left { my ($visible, $in_flight, $what) = @_; same(stats(), "$visible $in_flight", $what) }

# What ack:auto has delivered, and what stands before a DISCONNECT without a
# receipt, is deleted soon behind.
sub gone {
    for (1 .. 10 * $wait) { last if stats() eq '0 0'; select undef, undef, undef, 0.1 }
    left(0, 0, shift);
}

# The next frame, which must be such a one.
sub frame {
    my ($c, $command, %headers) = @_;
    my $f = $c->receive_frame({ timeout => $wait }) or die "no $command";
    same($f->command, $command, encode_json($f->headers));
    same($f->headers->{$_}, $headers{$_}, $_) for keys %headers;
    return $f;
}

# bytes is what a SEND of these octets needs: without it there is no content-length.
sub bytes { return (destination => $letters, body => shift, bytes_message => 1) }

# settle is ACK or NACK as the version spells it.
sub settle {
    my ($c, $verb, $version, $f, %headers) = @_;
    $headers{id} = $f->headers->{ack} if $version eq '1.2';
    $headers{subscription} = $f->headers->{subscription} if $version ne '1.0';
    $c->$verb({ frame => $f, %headers });
    frame($c, 'RECEIPT', 'receipt-id' => $headers{receipt}) if $headers{receipt};
}

sub subscribe { my ($c, $ack, %headers) = @_; $c->subscribe({ destination => $letters, id => 's', ack => $ack, %headers }) }

sub unsubscribe {
    my $c = shift;
    $c->unsubscribe({ destination => $letters, id => 's', receipt => 'u' });
    frame($c, 'RECEIPT', 'receipt-id' => 'u');
}

# disconnect asks for a receipt, which that of Net::Stomp cannot.
sub disconnect {
    my $c = shift;
    $c->send_frame(Net::Stomp::Frame->new({ command => 'DISCONNECT', headers => { receipt => 'bye' } }));
    frame($c, 'RECEIPT', 'receipt-id' => 'bye');
}

sub sessions {
    my $version = shift;
    my $c = connected($version);
    ok($version, "$version: opens a session");
    $c->send({ bytes('x') });
    subscribe($c, 'client-individual');
    settle($c, 'ack', $version, frame($c, 'MESSAGE'));
    disconnect($c);
    left(0, 0, 'behind a disconnect');
    ok('DISCONNECT', "$version: written by hand it has its receipt, and all before it is done");
}

sub bodies {
    my $version = shift;
    my $c = connected($version);
    $c->send({ bytes($text) });
    same($c->send_with_receipt({ bytes('told'), timeout => $wait }), 1, 'send_with_receipt');
    left(2, 0, 'behind a receipt');
    ok('receipts', "$version: one says that a message is stored, and those before it too");
    $c->send({ bytes($octets) });
    $c->send({ bytes('') });
    $c->send({ destination => $letters, body => 'to its NUL' });
    subscribe($c, 'client-individual');
    my @all = ($text, 'told', $octets, '', 'to its NUL');
    my @came = map { frame($c, 'MESSAGE') } @all;
    same($came[$_]->body, $all[$_], 'body') for 0 .. $#all;
    settle($c, 'ack', $version, $_, receipt => 'a') for @came;
    left(0, 0, 'acknowledged');
    ok('receipts', "$version: one says that an ACK is done");
    ok('text', "$version: comes as it went, empty and without content-length too");
    ok('octets', "$version: all 256, NUL among them");
    ok('client-individual', "$version: each ACK deletes one message");
    disconnect($c);
}

sub headers {
    my $version = shift;
    my $c = connected($version);
    subscribe($c, 'client-individual');
    # It escapes nothing, so that its caller must; nor does it decode.
    my $value = encode_utf8($version eq '1.0' ? 'a:b é' : 'a\\cb é');
    $c->send({ bytes('x'), kind => $value, 'content-type' => 'text/x; charset=utf-8' });
    my $f = frame($c, 'MESSAGE', kind => $value, 'content-type' => 'text/x; charset=utf-8');
    settle($c, 'ack', $version, $f);
    disconnect($c);
    ok('headers', "$version: of the caller's own come back as they went");
}

sub modes {
    my $version = shift;
    my $c = connected($version);
    subscribe($c, 'auto');
    $c->send({ bytes('auto') });
    same(frame($c, 'MESSAGE')->body, 'auto', 'body');
    unsubscribe($c);
    gone('auto');
    ok('auto', "$version: what was delivered is gone");
    $c->send_with_receipt({ bytes('unseen') });
    left(1, 0, 'behind an UNSUBSCRIBE');
    ok('UNSUBSCRIBE', "$version: nothing comes behind it");
    $c->send({ bytes($_) }) for 'second', 'third';
    subscribe($c, 'client');
    my (undef, $second, $third) = map { frame($c, 'MESSAGE') } 1 .. 3;
    settle($c, 'ack', $version, $second, receipt => 'a-2');
    left(0, 1, 'client');
    ok('client', "$version: an ACK deletes what came before it too");
    unsubscribe($c);
    settle($c, 'ack', $version, $third, receipt => 'a-3');
    left(0, 0, 'client');
    ok('UNSUBSCRIBE', "$version: what came before it can be acknowledged behind it");
    disconnect($c);
}

sub back {
    my $version = shift;
    my $c = connected($version);
    subscribe($c, 'client-individual');
    $c->send({ bytes('x') });
    settle($c, 'nack', $version, frame($c, 'MESSAGE', 'delivery-count' => 1, redelivered => 'false'));
    settle($c, 'ack', $version, frame($c, 'MESSAGE', 'delivery-count' => 2, redelivered => 'true'));
    disconnect($c);
    left(0, 0, 'acknowledged at last');
    ok('NACK', "$version: the message comes again at once");
}

sub refused {
    my $version = shift;
    for (['an unknown queue', 'NotAuthorizedOrNotFound', destination => 'nowhere'],
        ['a topic', 'InvalidParameter', destination => '/topic/prices'],
        ['a bad name of a property', 'InvalidParameter', 'no blanks' => 'y']) {
        my ($what, $code, %headers) = @$_;
        my $c = connected($version);
        my $got;
        same($c->send_with_receipt({ bytes('x'), %headers }, $got), 0, 'send_with_receipt');
        same($got->command . ' ' . $got->headers->{code}, "ERROR $code", $what);
        ok('ERROR', "$version: $what: $code");
    }
}

# It sends none, so that it must promise none; it reads past those of the server.
sub beats {
    my $version = shift;
    my $c = connected($version, 'heart-beat' => '0,1000');
    subscribe($c, 'client-individual');
    sleep 3;
    $c->send({ bytes('still here') });
    settle($c, 'ack', $version, frame($c, 'MESSAGE'));
    disconnect($c);
    left(0, 0, 'behind heart-beats');
    ok('heart-beats', "$version: those of the server are read past");
}

sub transactions {
    my $version = shift;
    my $c = connected($version);
    my $say = sub { $c->send_frame(Net::Stomp::Frame->new({ command => shift, headers => { transaction => shift } })) };
    $say->('BEGIN', 'a');
    $c->send({ bytes('never'), transaction => 'a' });
    $say->('ABORT', 'a');
    same($c->send_transactional({ bytes('one') }), 1, 'send_transactional');
    subscribe($c, 'client-individual');
    my $one = frame($c, 'MESSAGE');
    same($one->body, 'one', 'body');
    ok('transactions', "$version: a COMMIT publishes, an ABORT nothing");
    $say->('BEGIN', 'b');
    settle($c, 'ack', $version, $one, receipt => 'a', transaction => 'b');
    left(0, 1, 'before the COMMIT');
    $say->('COMMIT', 'b');
    disconnect($c);
    left(0, 0, 'behind the COMMIT');
    ok('transactions', "$version: a COMMIT deletes what was acknowledged in it");
}

# It connects and subscribes again by itself when it next sends or receives.
sub reconnects {
    my $version = shift;
    my $c = connected($version);
    subscribe($c, 'client-individual', visibility => 2);
    $c->send({ bytes('before') });
    frame($c, 'MESSAGE', 'delivery-count' => 1);
    get($ENV{RESTART});
    same(defined $c->receive_frame({ timeout => $wait }), '', 'a cut session');
    ok('reconnect', "$version: a cut session is a frame that is not there");
    my $f = frame($c, 'MESSAGE', 'delivery-count' => 2);
    same($f->body, 'before', 'body');
    settle($c, 'ack', $version, $f);
    disconnect($c);
    left(0, 0, 'behind a restart');
    ok('reconnect', "$version: connected and subscribed again by itself, it has what it had not acknowledged");
}

hello();
gone('behind what the page shows');
for my $version ('1.0', '1.1', '1.2') {
    $_->($version) for \&sessions, \&bodies, \&headers, \&modes, \&refused, \&transactions;
    if ($version ne '1.0') { # which has neither
        back($version);
        beats($version);
    }
}
reconnects('1.2');
