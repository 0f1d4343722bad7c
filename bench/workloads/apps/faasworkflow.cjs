'use strict'
const Redis = require('ioredis')

const state = new Redis(process.env.REDIS_URL)
const numbers = 2500 // of the set
const side = 16 // pixels of a side, once an image is smaller

const mean = values => values.reduce((sum, v) => sum + v, 0) / values.length

// DForge: each function is asked by itself.

/**
 * Fits a line to points.
 * @param {object} args - the coordinates x and y
 * @returns {object} the line
 */
exports.regression = args => {
  const { x, y } = args
  const mx = mean(x)
  const my = mean(y)
  const slope = mean(x.map((v, i) => (v - mx) * (y[i] - my))) / mean(x.map(v => (v - mx) ** 2))
  return { slope, offset: my - slope * mx }
}

/**
 * Scales numbers to a mean of 0 and a deviation of 1, and squares them.
 * @param {object} args - the numbers
 * @returns {object} two features of each
 */
exports.transform = args => {
  const { values } = args
  const m = mean(values)
  const deviation = Math.sqrt(mean(values.map(v => (v - m) ** 2)))
  const scaled = values.map(v => (v - m) / deviation)
  return { first: scaled, second: scaled.map(v => v * v) }
}

/**
 * Grows a decision tree.
 * @param {object} args - rows with features and a label
 * @returns {object} the tree
 */
exports.tree = args => {
  const { rows } = args
  const impurity = part => {
    const share = mean(part.map(r => r.label))
    return part.length * share * (1 - share)
  }
  const grow = (part, depth) => {
    let best = { impurity: impurity(part) }
    if (depth === 0 || best.impurity === 0) return { label: mean(part.map(r => r.label)) >= 0.5 ? 1 : 0 }
    for (const feature of part[0].features.keys()) {
      for (const row of part) {
        const at = row.features[feature]
        const left = part.filter(r => r.features[feature] < at)
        if (left.length === 0) continue
        const right = part.filter(r => r.features[feature] >= at)
        const found = impurity(left) + impurity(right)
        if (found < best.impurity) best = { impurity: found, feature, at, left, right }
      }
    }
    if (!best.left) return { label: mean(part.map(r => r.label)) >= 0.5 ? 1 : 0 }
    return { feature: best.feature, at: best.at, less: grow(best.left, depth - 1), more: grow(best.right, depth - 1) }
  }
  return { tree: grow(rows, 3) }
}

/**
 * Looks for a word in a text, with as few edits as possible.
 * @param {object} args - the word and the text
 * @returns {object} how many edits that takes, and how often the word is there without any
 */
exports.rule_match = args => {
  const { word, text } = args
  // the least number of edits that make the word a part of the text
  let above = new Array(text.length + 1).fill(0)
  for (let i = 1; i <= word.length; i++) {
    const row = [i]
    for (let j = 1; j <= text.length; j++) {
      row.push(Math.min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (word[i - 1] === text[j - 1] ? 0 : 1)))
    }
    above = row
  }
  return { word, edits: Math.min(...above), matches: text.split(word).length - 1 }
}

// Prediction: a sequence.

/**
 * Makes an image smaller.
 * @param {object} args - which image
 * @returns {Promise<object>} its pixels
 */
exports.resize = async args => {
  const { image } = args
  const found = await state.getBuffer(`image:${image}`)
  const width = Math.sqrt(found.length)
  const step = width / side
  const pixels = []
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      let sum = 0
      for (let dy = 0; dy < step; dy++) for (let dx = 0; dx < step; dx++) sum += found[(y * step + dy) * width + x * step + dx]
      pixels.push(Math.round(sum / step / step))
    }
  }
  return { image, pixels }
}

/**
 * Tells what an image shows.
 * @param {object} args - the image and its pixels
 * @returns {Promise<object>} the class with the highest score
 */
exports.predict = async args => {
  const { image, pixels } = args
  const weights = await state.getBuffer('model')
  const classes = weights.length / pixels.length
  let best = { label: 0, score: -Infinity }
  for (let label = 0; label < classes; label++) {
    let score = 0
    for (let i = 0; i < pixels.length; i++) score += pixels[i] * (weights[label * pixels.length + i] - 128)
    if (score > best.score) best = { label, score }
  }
  return { image, ...best }
}

/**
 * Renders a page.
 * @param {object} args - what the image shows
 * @returns {object} the page
 */
exports.render = args => {
  const { image, label, score } = args
  return { html: `<p>Image ${image} shows class ${label} (${score}).</p>` }
}

// SetCompute: a sequence without input.

/**
 * Computes a set of numbers.
 * @returns {object} the numbers
 */
exports.compute = () => {
  const all = new Set()
  for (let x = 1; all.size < numbers;) {
    x = x * 48271 % 2147483647
    all.add(x % 1000003)
  }
  return { numbers: [...all] }
}

/**
 * Finds the pairs that make a number.
 * @param {object} args - the numbers
 * @returns {object} the pairs
 */
exports.find = args => {
  const { numbers } = args
  const target = 1000003
  const pairs = []
  for (let i = 0; i < numbers.length; i++) {
    for (let j = i + 1; j < numbers.length; j++) if (numbers[i] + numbers[j] === target) pairs.push([numbers[i], numbers[j]])
  }
  return { target, pairs }
}

/**
 * Checks the pairs.
 * @param {object} args - the pairs and what each is to make
 * @returns {object} how many there are, and whether all are right
 */
exports.check = args => {
  const { target, pairs } = args
  return { pairs: pairs.length, correct: pairs.every(([a, b]) => a + b === target) }
}
