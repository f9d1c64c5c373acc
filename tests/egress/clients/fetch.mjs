// An HTTP client in Node. usage: fetch.mjs fetch|http METHOD URL [BODY]
import http from 'node:http';
import https from 'node:https';

const [way, method, url, body] = process.argv.slice(2);
const begun = performance.now();
const after = () => `after ${(performance.now() - begun).toFixed(1)} ms`;

function fail(e) {
	console.error(`${e.name}: ${e.message} ${e.cause ? e.cause.message || e.cause.code : e.code || ''}`);
	console.error(after());
	process.exit(1);
}

function done(status, text) {
	process.stdout.write(text);
	if (status >= 400) {
		console.error(`status ${status} ${after()}`);
		process.exit(22);
	}
}

if (way === 'fetch') {
	try {
		const r = await fetch(url, {method, body});
		done(r.status, await r.text());
	} catch (e) {
		fail(e);
	}
} else {
	const r = (url.startsWith('https') ? https : http).request(url, {method}, (answer) => {
		let text = '';
		answer.on('data', (d) => (text += d));
		answer.on('end', () => done(answer.statusCode, text));
	});
	r.on('error', fail);
	r.end(body);
}
