// Datagrams.
const dgram = require("dgram");
const server = dgram.createSocket("udp4"), client = dgram.createSocket("udp4");
server.on("message", (m, from) => server.send("re: " + m, from.port, from.address));
client.on("message", (m) => { console.log(String(m)); server.close(); client.close(); });
server.bind(0, "127.0.0.1", () => client.send("hi", server.address().port, "127.0.0.1"));
