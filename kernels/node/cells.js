// Part of the driver (driver.js): the text of a cell as it is evaluated.
//
// In a cell that has them, await, import and export are found by a tokenizer and rewritten, on the
// line where they are: `await x` becomes `await __pale.wait(x, ...)`, import() and import statements
// calls of what looks from the working directory. Whether a slash divides or begins a regular
// expression is told by what is before it. A text that is not understood stays as it is, and V8 says
// what it thinks of it.

const BEFORE_EXPRESSION = new Set(['return', 'typeof', 'instanceof', 'in', 'of', 'new', 'delete', 'void', 'throw', 'case',
	'do', 'else', 'await', 'yield', 'default', 'extends']);
const PREFIXES = new Set(['+', '-', '~', '!', '++', '--']);
const PUNCTUATORS = ['>>>=', '...', '===', '!==', '**=', '<<=', '>>=', '>>>', '&&=', '||=', '??=', '=>', '==', '!=', '<=', '>=',
	'&&', '||', '??', '?.', '++', '--', '+=', '-=', '*=', '/=', '%=', '&=', '|=', '^=', '<<', '>>', '**'];

// Tokens of a script: {type, text, start, end, match}, where match is the other bracket's index. A
// template is its pieces of text, which match one another, and the tokens between them. Null: not
// understood.
function tokenize(code) {
	const tokens = [], open = [];
	const word = /[\p{ID_Start}$_\\#][\p{ID_Continue}$\u200c\u200d\\{}]*|[\p{ID_Start}$_#]/uy;
	const number_ = /0[xXbBoO][\da-fA-F_]+n?|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?[\d_]+)?n?/y;
	let at = 0;
	const push = (type, start, end) => {
		tokens.push({ type, text: code.slice(start, end), start, end, match: -1 });
		at = end;
	};
	const close = (opener) => {
		const from = open.pop();

		if (from === undefined || !opener.includes(tokens[from].text.at(-1)))
			return false;
		tokens[from].match = tokens.length;
		tokens.push({ type: 'p', text: '', start: at, end: at, match: from });
		return true;
	};
	const template = (start) => { // from after a ` or }
		for (let i = at; i < code.length; i++) {
			if (code[i] === '\\')
				i++;
			else if (code[i] === '`')
				return push('template', start, i + 1), 'end';
			else if (code[i] === '$' && code[i + 1] === '{')
				return push('template', start, i + 2), 'open';
		}
		return null;
	};

	if (code.startsWith('#!'))
		at = code.indexOf('\n') < 0 ? code.length : code.indexOf('\n');
	while (at < code.length) {
		const c = code[at], next = code[at + 1];

		if (/\s/.test(c)) {
			at++;
		} else if (c === '/' && next === '/') {
			const end = code.slice(at).search(/[\n\r\u2028\u2029]/);

			at = end < 0 ? code.length : at + end;
		} else if (c === '/' && next === '*') {
			const end = code.indexOf('*/', at + 2);

			if (end < 0)
				return null;
			at = end + 2;
		} else if (c === '"' || c === "'") {
			let end = at + 1;

			while (end < code.length && code[end] !== c)
				end += code[end] === '\\' ? 2 : 1;
			if (end >= code.length)
				return null;
			push('string', at, end + 1);
		} else if (c === '`') {
			const start = at++;
			const how = template(start);

			if (!how)
				return null;
			if (how === 'open')
				open.push(tokens.length - 1);
		} else if (/[\d]/.test(c) || (c === '.' && /\d/.test(next))) {
			number_.lastIndex = at;
			push('number', at, at + number_.exec(code)[0].length);
		} else if ((word.lastIndex = at, word.test(code))) {
			// Braces are part of it only in an escape.
			let end = at;

			while (end < word.lastIndex && !/[{}]/.test(code[end]))
				end++;
			if (end === at)
				return null;
			push('word', at, end);
		} else if (c === '/' && regexpMayFollow(tokens)) {
			let end = at + 1, inClass = false;

			for (; end < code.length && (code[end] !== '/' || inClass); end++) {
				if (code[end] === '\\')
					end++;
				else if (code[end] === '[')
					inClass = true;
				else if (code[end] === ']')
					inClass = false;
				else if (code[end] === '\n')
					return null;
			}
			end++;
			while (end < code.length && /[\p{ID_Continue}$]/u.test(code[end]))
				end++;
			push('regexp', at, end);
		} else if ('([{'.includes(c)) {
			open.push(tokens.length);
			push('p', at, at + 1);
		} else if (c === '}' && open.length && tokens[open.at(-1)].type === 'template') {
			const from = open.pop(), start = at++;
			const how = template(start);

			if (!how)
				return null;
			tokens[from].match = tokens.length - 1;
			tokens.at(-1).match = from;
			tokens.at(-1).middle = true;
			if (how === 'open')
				open.push(tokens.length - 1);
		} else if (')]}'.includes(c)) {
			if (!close(c === ')' ? '(' : c === ']' ? '[' : '{'))
				return null;
			tokens.at(-1).text = c;
			tokens.at(-1).end = ++at;
		} else {
			let p = PUNCTUATORS.find((x) => code.startsWith(x, at)) || c;

			if (p === '?.' && /\d/.test(code[at + 2] || ''))
				p = '?';
			push('p', at, at + p.length);
		}
	}
	return open.length ? null : tokens;
}

function isProperty(tokens, i) {
	return i > 0 && (tokens[i - 1].text === '.' || tokens[i - 1].text === '?.') && tokens[i - 1].type === 'p';
}

function regexpMayFollow(tokens) {
	const i = tokens.length - 1, last = tokens[i];

	if (!last)
		return true;
	switch (last.type) {
	case 'number': case 'string': case 'regexp': return false;
	case 'template': return !last.text.endsWith('`');
	case 'word': return BEFORE_EXPRESSION.has(last.text) && !isProperty(tokens, i);
	}
	if (last.text === ')') {
		const before = tokens[last.match - 1];

		return before?.type === 'word' && ['if', 'while', 'for', 'with'].includes(before.text) &&
			!isProperty(tokens, last.match - 1);
	}
	if (last.text === '}')
		return !isObject(tokens, last.match);
	return ![']', '++', '--'].includes(last.text);
}

// Whether the brace begins an object rather than a block.
function isObject(tokens, i) {
	const before = tokens[i - 1];

	if (!before || before.type === 'template')
		return Boolean(before);
	if (before.type === 'word')
		return ['return', 'typeof', 'in', 'of', 'new', 'throw', 'case', 'await', 'yield', 'default', 'void', 'delete'].includes(before.text);
	return before.type === 'p' && !['=>', ')', ';', '{', '}', ':'].includes(before.text);
}

const newlineBetween = (code, a, b) => /[\n\r\u2028\u2029]/.test(code.slice(a.end, b.start));

// The index after the last token of the operand of await that begins at i, or -1.
function operandEnd(code, tokens, i) {
	const n = tokens.length;
	const is = (k, text) => k < n && tokens[k].text === text && tokens[k].type !== 'string';

	while (i < n && ((tokens[i].type === 'p' && PREFIXES.has(tokens[i].text)) ||
		(tokens[i].type === 'word' && ['typeof', 'void', 'delete', 'await', 'new'].includes(tokens[i].text)))) {
		if (is(i, 'new') && is(i + 1, '.'))
			break;
		i++;
	}
	if (i >= n)
		return -1;
	if (is(i, 'async') && is(i + 1, 'function'))
		i++;
	if (is(i, 'function')) {
		for (i++; i < n && !is(i, '('); i++)
			;
		if (i >= n || !is(tokens[i].match + 1, '{'))
			return -1;
		i = tokens[tokens[i].match + 1].match + 1;
	} else if (is(i, 'class')) {
		for (i++; i < n && !is(i, '{'); i = tokens[i].match > i ? tokens[i].match + 1 : i + 1)
			;
		if (i >= n)
			return -1;
		i = tokens[i].match + 1;
	} else if (['(', '[', '{'].includes(tokens[i].text) && tokens[i].type === 'p') {
		i = tokens[i].match + 1;
	} else if (tokens[i].type === 'template') {
		i = templateEnd(tokens, i);
	} else if (tokens[i].type !== 'p') {
		i++;
	} else {
		return -1;
	}
	for (;;) {
		if (is(i, '.') || is(i, '?.')) {
			const k = i + 1;

			if (k < n && tokens[k].type === 'word')
				i += 2;
			else if (is(i, '?.') && (is(k, '(') || is(k, '[')))
				i = tokens[k].match + 1;
			else
				return -1;
		} else if (is(i, '(') || is(i, '[')) {
			i = tokens[i].match + 1;
		} else if (i < n && tokens[i].type === 'template' && tokens[i].text[0] === '`') {
			i = templateEnd(tokens, i);
		} else if ((is(i, '++') || is(i, '--')) && !newlineBetween(code, tokens[i - 1], tokens[i])) {
			i++;
		} else {
			return i;
		}
	}
}

function templateEnd(tokens, i) {
	while (!(tokens[i].text.endsWith('`') && (tokens[i].text.length > 1 || tokens[i].middle)))
		i = tokens[i].match;
	return i + 1;
}

// {a, b as c, "d" as e}: the names, and as a pattern.
function importList(tokens, from, to) {
	const names = [], parts = [];

	for (let i = from; i < to; i++) {
		const name = tokens[i];
		const key = name.type === 'string' ? name.text : JSON.stringify(name.text);
		let local = name.text;

		if (tokens[i + 1].text === 'as') {
			local = tokens[i + 2].text;
			i += 2;
		}
		names.push(key);
		parts.push(`${key}: ${local}`);
		if (tokens[i + 1].text === ',')
			i++;
	}
	return { names, parts };
}

// import ... from 'm' with {...}, at token i: {end, text}, or null.
function importStatement(code, tokens, i) {
	const names = [], parts = [];
	const text = (k) => tokens[k]?.text;
	let k = i + 1;

	if (tokens[k]?.type !== 'string') {
		if (tokens[k]?.type === 'word' && !(text(k) === 'from' && tokens[k + 1]?.type === 'string')) {
			names.push('"default"');
			parts.push(`default: ${text(k++)}`);
			if (text(k) === ',')
				k++;
		}
		if (text(k) === '*' && text(k + 1) === 'as') {
			names.push('"*"');
			parts.push(`"*": ${text(k + 2)}`);
			k += 3;
		} else if (text(k) === '{') {
			const list = importList(tokens, k + 1, tokens[k].match);

			names.push(...list.names);
			parts.push(...list.parts);
			k = tokens[k].match + 1;
		}
		if (text(k) !== 'from' || tokens[k + 1]?.type !== 'string')
			return null;
		k++;
	}
	const name = text(k++);
	let options = '';

	if ((text(k) === 'with' || text(k) === 'assert') && text(k + 1) === '{') {
		options = `, {${text(k)}: ${code.slice(tokens[k + 1].start, tokens[tokens[k + 1].match].end).replace(/\n/g, ' ')}}`;
		k = tokens[k + 1].match + 1;
	}
	return {
		end: tokens[k - 1].end,
		text: `${parts.length ? `const {${parts.join(', ')}} = ` : ''}await __pale.wait(__pale.names(${name}, ` +
			`[${names.join(', ')}]${options}), ID, LINE, COLUMN);`,
	};
}

// The code as it is evaluated: line numbers stay. What is not understood stays as it is.
function transform(id, code) {
	if (!/\b(?:await|import|export)\b/.test(code))
		return code;
	const tokens = tokenize(code);

	if (!tokens)
		return code;
	const changes = []; // {start, end, text}
	let depth = 0;
	const insert = (at, text) => changes.push({ start: at, end: at, text });
	const place = (t) => {
		const before = code.slice(0, t.start);
		const line = before.split('\n').length;

		return `${id}, ${line}, ${t.start - before.lastIndexOf('\n')}`;
	};

	for (let i = 0; i < tokens.length; i++) {
		const t = tokens[i], next = tokens[i + 1];

		if (t.match > i)
			depth++;
		if (t.match >= 0 && t.match < i)
			depth--;
		if (t.type !== 'word' || isProperty(tokens, i) || !next)
			continue;
		if (t.text === 'await') {
			if (tokens[i - 1]?.text === 'for' && next.text === '(') {
				const last = next.match;
				let of = i + 2;

				while (of < last && tokens[of].text !== 'of')
					of = tokens[of].match > of ? tokens[of].match + 1 : of + 1;
				if (of + 1 < last) {
					insert(tokens[of + 1].start, '__pale.each(');
					insert(tokens[last].start, `, ${place(t)})`);
				}
				continue;
			}
			if (next.text === ':' || (next.text === 'using' && tokens[i + 2]?.type === 'word'))
				continue;
			const end = operandEnd(code, tokens, i + 1);

			if (end > 0) {
				insert(next.start, '__pale.wait(');
				insert(tokens[end - 1].end, `, ${place(t)})`);
			}
		} else if (t.text === 'import' && (next.text === '(' || next.text === '.')) {
			changes.push({ start: t.start, end: t.end, text: '__pale.import' });
		} else if (t.text === 'import' && depth === 0) {
			const found = importStatement(code, tokens, i);

			if (found) {
				const lines = code.slice(t.start, found.end).split('\n').length - 1;

				changes.push({ start: t.start, end: found.end, text: found.text.replace('ID, LINE, COLUMN', place(t)) + '\n'.repeat(lines) });
				while (i + 1 < tokens.length && tokens[i + 1].start < found.end)
					i++;
			}
		} else if (t.text === 'export' && depth === 0) {
			if (['const', 'let', 'var', 'function', 'async', 'class'].includes(next.text))
				changes.push({ start: t.start, end: t.end, text: '' });
			else if (next.text === 'default')
				changes.push({ start: t.start, end: next.end, text: '' });
			else if (next.text === '{')
				changes.push({ start: t.start, end: tokens[next.match].end, text: '' });
		}
	}
	return apply(id, code, changes);
}

function apply(id, code, changes) {
	const list = [];
	let text = '', at = 0, line = 1, lineStart = 0, shift = 0;

	if (!changes.length)
		return code;
	// At one place an end comes before a beginning, and inner ends first: as they were made, but for
	// ends, which were made with their beginnings.
	changes.forEach((c, i) => {
		c.order = c.text.startsWith(',') ? -i : changes.length + i;
	});
	changes.sort((a, b) => a.start - b.start || a.order - b.order);
	for (const c of changes) {
		text += code.slice(at, c.start);
		for (let k = at; k < c.start; k++)
			if (code[k] === '\n') {
				line++;
				lineStart = k + 1;
				shift = 0;
			}
		const added = c.text.length - (c.end - c.start);

		shift += added;
		list.push({ line, column: c.start - lineStart + 1, added: shift, shift });
		text += c.text;
		at = c.start;
		for (let k = at; k < c.end; k++)
			if (code[k] === '\n') {
				line++;
				lineStart = k + 1;
				shift = 0;
			}
		at = c.end;
	}
	text += code.slice(at);
	edits.set(id, list);
	if (edits.size > 2000)
		edits.delete(edits.keys().next().value);
	return text;
}

