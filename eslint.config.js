import js from '@eslint/js'
import jsdoc from 'eslint-plugin-jsdoc'
import globals from 'globals'

export default [
  { ignores: ['.forerun/', 'bin/', 'internal/', 'node_modules/'] },
  js.configs.recommended,
  jsdoc.configs['flat/recommended-error'],
  {
    languageOptions: { globals: globals.node },
    rules: {
      eqeqeq: 'error',
      'jsdoc/require-jsdoc': ['error', { publicOnly: true, enableFixer: false }],
      'jsdoc/tag-lines': 'off',
      'no-var': 'error',
      'prefer-const': 'error'
    }
  },
  { files: ['test/browser/*.js'], languageOptions: { globals: globals.browser } },
  { files: ['**/*.cjs'], languageOptions: { sourceType: 'commonjs' } }
]
