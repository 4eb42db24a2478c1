// SPDX-License-Identifier: GPL-2.0-only
/*
 * tcp_peer.c: an ordinary TCP server and client, which know nothing of RDMA. The client
 * sends BYTES bytes of a pattern, and the server sends each of them back with its bits
 * turned over.
 *
 *	tcp_peer ADDRESS PORT			the server, for one client
 *	tcp_peer ADDRESS PORT BYTES		the client
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHUNK	16384

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void send_all(int fd, const uint8_t *p, size_t len)
{
	ssize_t n;

	for (; len; p += n, len -= n) {
		n = send(fd, p, len, 0);
		if (n <= 0)
			die("send");
	}
}

static void turn(uint8_t *p, size_t len)
{
	while (len--) {
		*p = ~*p;
		p++;
	}
}

static int serve(const struct sockaddr_in *at)
{
	int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0), fd;
	uint8_t chunk[CHUNK];
	ssize_t n;

	if (listener < 0)
		die("socket");
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (const struct sockaddr *)at, sizeof(*at)))
		die("bind");
	if (listen(listener, 1))
		die("listen");
	fd = accept(listener, NULL, NULL);
	if (fd < 0)
		die("accept");
	while ((n = recv(fd, chunk, sizeof(chunk), 0)) > 0) {
		turn(chunk, n);
		send_all(fd, chunk, n);
	}
	close(fd);
	close(listener);
	return 0;
}

/* A chunk goes out when the one before is back: neither side must buffer without end. */
static void exchange(int fd, size_t from, size_t len)
{
	uint8_t out[CHUNK], in[CHUNK];
	size_t i, got = 0;
	ssize_t n;

	for (i = 0; i < len; i++)
		out[i] = (from + i) * 31 >> 3;
	send_all(fd, out, len);
	for (; got < len; got += n) {
		n = recv(fd, in + got, len - got, 0);
		if (n <= 0)
			die("recv");
	}
	turn(in, len);
	if (memcmp(in, out, len)) {
		fprintf(stderr, "wrong data\n");
		exit(1);
	}
}

static int ask(const struct sockaddr_in *at, size_t bytes)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	size_t done, len;

	if (fd < 0)
		die("socket");
	if (connect(fd, (const struct sockaddr *)at, sizeof(*at)))
		die("connect");
	for (done = 0; done < bytes; done += len) {
		len = bytes - done < CHUNK ? bytes - done : CHUNK;
		exchange(fd, done, len);
	}
	shutdown(fd, SHUT_RDWR);
	close(fd);
	printf("%zu bytes came back\n", bytes);
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET };

	if (argc < 3 || inet_pton(AF_INET, argv[1], &at.sin_addr) != 1) {
		fprintf(stderr, "usage: %s ADDRESS PORT [BYTES]\n", argv[0]);
		return 2;
	}
	at.sin_port = htons(atoi(argv[2]));
	return argc > 3 ? ask(&at, atol(argv[3])) : serve(&at);
}
