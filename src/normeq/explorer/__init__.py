"""The local page of ``normeq explore``: an image and its denoised twin, computed as they are seen.

`exploration` computes what the page asks for, `local_app` answers its requests and nobody else's,
`serving` runs it. The page itself is plain HTML, CSS and JavaScript, in the folder ``page``.
"""
