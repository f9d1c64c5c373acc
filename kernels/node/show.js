// Part of the driver (driver.js): errors and values as they are shown.

// ---------------------------------------------------------------- errors

const CELL = /<cell-(\d+)>/g;
const edits = new Map(); // id of a cell: what was put into its text, to tell columns as they were

function showCells(text) {
	return text.replace(/<cell-(\d+)>:(\d+):(\d+)/g, (all, id, line, column) =>
		`<cell ${id}>:${line}:${columnBefore(Number(id), Number(line), Number(column))}`)
		.replace(CELL, '<cell $1>');
}

function columnBefore(id, line, column) {
	let shift = 0;

	for (const edit of edits.get(id) || [])
		if (edit.line === line && edit.column + edit.added <= column)
			shift = edit.shift;
	return column - shift;
}

// Frames of the user's: not the driver's, nor what is below the last of them.
function prepareStackTrace(error, sites) {
	const own = sites.findIndex((s) => s.getFileName() === SCOPE ||
		(s.getFileName() === ownFile && s.getFunctionName() === 'evaluate'));
	let frames = own < 0 ? sites : sites.slice(0, own);
	let head;

	frames = frames.filter((s) => s.getFileName() !== ownFile);
	for (let last; (last = frames[frames.length - 1]) !== undefined; frames.pop()) {
		const file = last.getFileName();

		if ((!file || !file.startsWith('node:')) && !/^__pale/.test(last.getFunctionName() || ''))
			break;
		// Of an error of node's own, which no frame of the user's is in, all are kept.
		if (own < 0 && frames.length === 1) {
			frames = sites.filter((s) => s.getFileName() !== ownFile);
			break;
		}
	}
	try {
		head = Error.prototype.toString.call(error);
	} catch {
		head = 'Error';
	}
	return showCells([head, ...frames.map((s) => `    at ${s}`)].join('\n'));
}

function show(value, options) {
	try {
		const text = util.inspect(value, options);

		return text.length > TEXT_MAX ? text.slice(0, TEXT_MAX) + '...' : text;
	} catch (error) {
		return `[cannot be shown: ${messageOf(error)}]`;
	}
}

function isError(value) {
	try {
		return util.types.isNativeError(value) || value instanceof Error;
	} catch {
		return false;
	}
}

function messageOf(error) {
	try {
		return isError(error) ? String(error.message) : show(error);
	} catch {
		return '';
	}
}

function nameOf(error) {
	try {
		if (isError(error))
			return String(error.name || error.constructor?.name || 'Error');
	} catch {
		// A name that throws is none.
	}
	return 'Uncaught';
}

// Line and column, from 0, as they are in the code: what ends too early ends in a line of ours.
function placeOf(run, details) {
	const lines = run.code.split('\n');
	const line = details.lineNumber;

	if (line >= lines.length)
		return [lines.length - 1, lines.at(-1).length, lines.at(-1)];
	return [line, Math.max(columnBefore(run.id, line + 1, details.columnNumber + 1) - 1, 0), lines[line]];
}

// As node shows where the text cannot be read.
function syntaxText(run, error, details) {
	const [line, column, text] = placeOf(run, details);
	const shown = text.length > 500 ? '' : `${text}\n${text.slice(0, column).replace(/[^\t]/g, ' ')}^\n`;

	return `<cell ${run.id}>:${line + 1}\n${shown}${error.name}: ${error.message}`;
}

function failure(run, error, details) {
	let line = 0, text;

	// Not run at all, if there is no frame of it.
	if (util.types.isNativeError(error) && error.name === 'SyntaxError' && details && !details.stackTrace &&
		!String(error.stack).includes('<cell ')) {
		line = placeOf(run, details)[0] + 1;
		text = syntaxText(run, error, details);
	} else {
		text = isError(error) ? show(error) : `Uncaught ${show(error)}`;
		line = Number(new RegExp(`<cell ${run.id}>:(\\d+)`).exec(text)?.[1] || 0);
	}
	return { name: nameOf(error), line, message: messageOf(error), text };
}

// What is thrown where nobody waits for it: the session goes on.
function onUncaught(error, origin) {
	if (error === fatalMark && error) {
		fatalMark = null;
		return;
	}
	// The user's own listener has it.
	if (process.listenerCount(origin) > 1)
		return;
	const how = origin === 'unhandledRejection' ? 'Uncaught (in promise)' : 'Uncaught';

	process.stderr.write(`${how} ${show(error)}\n`);
}

// ---------------------------------------------------------------- what is shown

const HOOK = Symbol.for('Jupyter.display');
const SIGNATURES = [
	['image/png', [0x89, 0x50, 0x4e, 0x47]],
	['image/jpeg', [0xff, 0xd8, 0xff]],
	['image/gif', [0x47, 0x49, 0x46, 0x38]],
	['application/pdf', [0x25, 0x50, 0x44, 0x46]],
];

function isBundle(value) {
	if (!value || typeof value !== 'object' || util.types.isProxy(value) ||
		![Object.prototype, null].includes(Object.getPrototypeOf(value)))
		return false;
	const keys = Object.keys(value);

	return keys.length > 0 && keys.every((k) => /^[a-z]+\/[\w.+-]+$/.test(k));
}

function encode(data) {
	if (typeof data === 'string')
		return Buffer.from(data);
	if (ArrayBuffer.isView(data))
		return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
	if (data instanceof ArrayBuffer)
		return Buffer.from(data);
	return Buffer.from(JSON.stringify(data) ?? 'null');
}

// [[MIME type, bytes]], or a promise of it.
function bundleOf(value, asBundle) {
	let bundle = asBundle && isBundle(value) ? value : undefined;

	if (bundle === undefined && value !== null && (typeof value === 'object' || typeof value === 'function') &&
		!util.types.isProxy(value) && typeof value[HOOK] === 'function') {
		bundle = value[HOOK]();
		if (util.types.isPromise(bundle))
			return bundle.then(encodeBundle);
	}
	if (bundle !== undefined)
		return encodeBundle(bundle);
	if (asBundle && ArrayBuffer.isView(value)) {
		const bytes = encode(value);
		const type = SIGNATURES.find(([, start]) => start.every((b, i) => bytes[i] === b))?.[0];

		if (type)
			return [[type, bytes]];
	}
	return [['text/plain', Buffer.from(show(value, { showProxy: true }))]];
}

function encodeBundle(bundle) {
	return Object.entries(bundle ?? {}).filter(([, data]) => data !== undefined && data !== null)
		.map(([type, data]) => [type, encode(data)]);
}

function sendBundle(run, entries, flags) {
	const n = ++run.displays;

	for (const [type, bytes] of entries)
		send(DATA, run.id, n, type, bytes, flags);
}

// A global for cells: display(value), display.html(text), ...
function display(...values) {
	const run = current || running || latest, later = [];

	for (const value of values) {
		const entries = bundleOf(value, true);

		if (util.types.isPromise(entries))
			later.push(entries.then((got) => sendBundle(run, got, 0)));
		else if (run)
			sendBundle(run, entries, 0);
	}
	return later.length ? Promise.all(later).then(() => undefined) : undefined;
}

for (const [name, type] of Object.entries({
	html: 'text/html', markdown: 'text/markdown', latex: 'text/latex', svg: 'image/svg+xml', png: 'image/png',
	jpeg: 'image/jpeg', json: 'application/json', text: 'text/plain',
}))
	display[name] = (data) => display({ [type]: data });

