# What docs/clients.md shows of Net::Stomp.
use strict;
use warnings;
use Net::Stomp;

sub connected {
    my ($version, %headers) = @_;
    my ($host, $port) = split /:/, $ENV{STOMP};
    my $stomp = Net::Stomp->new({ hostname => $host, port => $port });
    my $frame = $stomp->connect({ 'accept-version' => $version, host => 'queued', %headers });
    die $frame->headers->{message} if $frame->command eq 'ERROR';
    return $stomp;
}

sub hello {
    my $stomp = connected('1.2');
    $stomp->subscribe({ destination => 'letters', id => '1', ack => 'client-individual' });
    $stomp->send({ destination => 'letters', body => 'hello', bytes_message => 1 });
    my $frame = $stomp->receive_frame;
    die $frame->headers->{message} if $frame->command eq 'ERROR';
    $stomp->ack({ frame => $frame, id => $frame->headers->{ack} });
    $stomp->disconnect;
}

1;
