"""The page as static files that run the networks in the browser: 'make site'. No part of the installed package."""
